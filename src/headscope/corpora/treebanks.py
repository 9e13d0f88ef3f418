"""The treebanks of Universal Dependencies by their codes, such as ``ud:en_ewt``, from one release into the cache.

The files come from the release's tag in the repositories of Universal Dependencies. Their SHA-256 is not published;
`KNOWN` has it for the English Web Treebank, and other files are trusted on first use (`headscope.corpora.download`).
"""

import logging
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from headscope.corpora.download import MissingFileError, fetch
from headscope.corpora.text import format_count
from headscope.errors import CorpusError, list_close, list_some, quote
from headscope.files import cache_folder, reading, write_text

logger = logging.getLogger("headscope")

PREFIX = "ud:"
RELEASE = "2.16"
HANDLE = "https://hdl.handle.net/11234/1-5901"
"""The page of the release, which says how to cite it."""

ADDRESS = "https://raw.githubusercontent.com/UniversalDependencies"
SPLITS = ("dev", "test", "train")
"""The splits in the order in which one is chosen if none is named; small treebanks have only a test split."""

KNOWN = {
    "en_ewt-ud-dev.conllu": "531a54ff90d6ab12201c5a50c3e78e6ddac4de69abc4bce5d275d3cd29efe2b6",
    "en_ewt-ud-test.conllu": "e266e515a0a7547657ed3d90d9ba46487d6bd251f27ad4269d4e8a427c8555cd",
    "en_ewt-ud-train.conllu": "3fb78e2b55482c8ee00caa653af436c88c9e5bc9a73ce26e4ae3ddc79d2b7e7b",
}
"""The SHA-256 of files of the release."""

_NAME = re.compile(rf"{PREFIX}(?P<code>[a-z_]+)(:(?P<split>{'|'.join(SPLITS)}))?")
_FILE = re.compile(rf"(?P<code>[a-z]+_[a-z0-9]+)-ud-({'|'.join(SPLITS)})\b.*")
_LICENCE = re.compile(r"^License: *(\S.*?) *$", re.MULTILINE)
_NO_TEXT = re.compile(r"^Includes text: *no\b", re.MULTILINE)


@dataclass(frozen=True)
class TreebankFile:
    """A split of a treebank in the cache.

    Attributes:
        path: the path of the file.
        source: the treebank, the split, the release and the licence, in words.
    """

    path: Path
    source: str


def list_treebanks() -> dict[str, str]:
    """Return the repository of each treebank of the release by its code.

    A line of ``treebanks.txt`` has the code of a language, its name and the names of its treebanks, from
    ``valdan/releases.json`` in the repository ``docs-automation`` of Universal Dependencies.
    """
    lines = files("headscope.corpora").joinpath("treebanks.txt").read_text(encoding="utf-8").splitlines()
    rows = (line.split() for line in lines)
    return {
        f"{code}_{treebank.lower()}": f"UD_{language}-{treebank}"
        for code, language, *treebanks in rows
        for treebank in treebanks
    }


def describe_several(paths: Iterable[Path]) -> str:
    """Return a sentence that names the treebanks of some files, by the file names; empty if there are not several."""
    codes = Counter(match["code"] for path in paths if (match := _FILE.fullmatch(path.name)))
    if len(codes) < 2:
        return ""
    known, languages = list_treebanks(), {code.partition("_")[0] for code in codes}
    listed = ", ".join(f"{known.get(code, code)} ({format_count(files, 'file')})" for code, files in codes.items())
    in_all = f" of {len(languages)} languages" if len(languages) > 1 else ""
    return f"The files are of {len(codes)} treebanks{in_all}, measured as one: {listed}."


def fetch_treebank(name: str) -> TreebankFile:
    """Return the file of a split of a treebank; download the file unless it is in the cache.

    Args:
        name: ``ud:CODE`` or ``ud:CODE:SPLIT``. Default: the first of `SPLITS` that the treebank has.

    Raises:
        CorpusError: the treebank or split is unknown, comes without its text, or cannot be downloaded.
        HeadscopeError: the cache cannot be written to.
    """
    match = _NAME.fullmatch(name)
    code = match["code"] if match else name.split(":")[1]
    if (repository := list_treebanks().get(code)) is None:
        raise _refuse_code(code)
    if match is None:
        raise CorpusError(
            f"the corpus {quote(name)} is not understood; a split of {repository} is ud:{code}:dev, :test or :train."
        )
    folder, address = cache_folder("corpora") / f"ud-{RELEASE}" / repository, f"{ADDRESS}/{repository}/r{RELEASE}"
    about = _read_about(f"{address}/README.md", folder / "README.md")
    if _NO_TEXT.search(about):
        raise CorpusError(
            f"{repository} has annotation without the words, which its licence does not let it pass on; its "
            f"{folder / 'README.md'} says how to get them: give the path of the file with words."
        )
    missing: list[Path] = []
    for split in (match["split"],) if match["split"] else SPLITS:
        path = folder / f"{code}-ud-{split}.conllu"
        if path.with_suffix(".missing").exists():
            continue
        is_new = not path.exists()
        try:
            fetch(f"{address}/{path.name}", path, KNOWN.get(path.name, ""))
        except MissingFileError:
            missing.append(path.with_suffix(".missing"))
            continue
        for each in missing:  # a release does not change, and without a network the server cannot be asked again
            write_text("", each)
        licence = _LICENCE.search(about)
        source = (
            f"{repository}, {split}, Universal Dependencies {RELEASE} ({HANDLE}), licence "
            f"{licence[1] if licence else 'not stated'}"
        )
        if is_new:
            logger.warning("downloaded %s, kept in %s", source, folder)
        return TreebankFile(path, source)
    raise CorpusError(
        f"{repository} has no file {path.name} in Universal Dependencies {RELEASE}; small treebanks have a test split "
        "alone, and the training splits of the largest are in parts: name another split, or download the parts and "
        "give their folder."
    )


def _read_about(address: str, path: Path) -> str:
    """Return the README of a treebank, which states the licence; empty if there is none (this is cached too)."""
    missing = path.with_suffix(".missing")
    if missing.exists():
        return ""
    try:
        with reading(fetch(address, path)) as file:
            return file.read().decode(errors="replace")
    except MissingFileError:
        missing.parent.mkdir(parents=True, exist_ok=True)
        write_text("", missing)
        return ""


def _refuse_code(code: str) -> CorpusError:
    codes = list_treebanks()
    language = code.partition("_")[0].lower()
    near = list_close(code, codes, 3) or [each for each in codes if each.startswith(f"{language}_")]
    advice = f"near it are {list_some(near)}" if near else "a code is that of the language, _ and the treebank"
    return CorpusError(
        f"Universal Dependencies {RELEASE} has no treebank {quote(code)} among its {len(codes)}; {advice}: give one, "
        f"such as {PREFIX}{near[0] if near else 'en_ewt'}."
    )
