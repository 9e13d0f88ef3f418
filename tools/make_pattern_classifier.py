"""Train the classifier of attention maps that comes with headscope, and say how good it is.

    python tools/make_pattern_classifier.py FOLDER_OF_GLUE

The labels and the choice of maps are those of `minilm_maps`; the texts are read from GLUE and the maps are made by
MiniLM. Writes the weights where headscope reads them, and prints the cross-validation, whose figures
`docs/howto/patterns.md` quotes.
"""

import argparse
from importlib.resources import files
from pathlib import Path

from sklearn.metrics import cohen_kappa_score, f1_score

import headscope
from headscope.learn.map_classifier import LabelledImages, cross_validate, finetune, pretrain, write_classifier
from headscope.reducers.support.pattern_network import PATTERNS, SHIPPED
from minilm_maps import make_maps, read_labels


def main() -> None:
    """Train, validate, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="folder that holds glue, or is it")
    labels = read_labels()
    maps = make_maps(headscope.load("minilm"), parser.parse_args().data, labels)
    labelled = LabelledImages.from_maps(maps, [each.label for each in labels])
    network = pretrain()
    write_classifier(finetune(network, labelled), Path(str(files("headscope.reducers.support") / SHIPPED)))
    twice = [(each.label, each.second) for each in labels if each.second]
    first, second = zip(*twice, strict=True)
    agreed = sum(label == other for label, other in twice)
    print(
        f"second annotator: {agreed} of {len(twice)}, kappa {cohen_kappa_score(first, second):.2f}, "
        f"macro F1 {f1_score(first, second, average='macro'):.2f}"
    )
    for by_head in (False, True):
        validation = cross_validate(network, labelled, by_head=by_head)
        low, high = validation.interval
        print(f"\nparts of the {'heads' if by_head else 'maps'}: macro F1 {validation.f1:.3f} [{low:.3f}, {high:.3f}]")
        values = f1_score(validation.labels, validation.predicted, average=None)  # all patterns occur
        for name, value, row in zip(PATTERNS, values, validation.confusion, strict=True):
            print(f"  {name:18} F1 {value:.2f}  labelled so and predicted as each: {row.tolist()}")


if __name__ == "__main__":
    main()
