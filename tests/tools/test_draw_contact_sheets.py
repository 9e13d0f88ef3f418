"""Contact sheets: each map of a folder is on one of them, under its number."""

import sys
from pathlib import Path

import numpy as np
import torch

import draw_contact_sheets
from headscope.learn.map_labels import write_maps
from headscope.learn.map_sample import HeadMap, MapName
from headscope.reducers.support.pattern_network import make_images


def make_maps(count: int, length: int = 11) -> list[HeadMap]:
    generator = np.random.default_rng(3)
    weights = generator.dirichlet(np.ones(length), (count, length)).astype(np.float32)
    return [HeadMap(MapName(f"text {number}", 1, 2), each, (4, length - 1)) for number, each in enumerate(weights)]


def test_each_map_is_on_a_sheet_under_its_number() -> None:
    maps = make_maps(29)
    sheets = list(draw_contact_sheets.draw_contact_sheets(maps))
    drawn = [axes for sheet in sheets for axes in sheet.axes if axes.images]
    assert [len([axes for axes in sheet.axes if axes.images]) for sheet in sheets] == [24, 5]
    assert [axes.get_title() for axes in drawn] == [str(number) for number in range(1, 30)]
    for axes, each in zip(drawn, maps, strict=True):
        image = make_images(torch.from_numpy(each.weights)[None])[0, 0].numpy()
        np.testing.assert_array_equal(axes.images[0].get_array(), image)
        left, right = axes.get_xlim()
        shares = [(tick - left) / (right - left) for tick in axes.get_xticks()]
        np.testing.assert_allclose(shares, [4.5 / 11, 10.5 / 11])
        np.testing.assert_array_equal(axes.get_xticks(), axes.get_yticks())


def test_the_sheets_of_a_folder_are_written_into_it(tmp_path: Path, monkeypatch) -> None:
    write_maps(tmp_path / "maps", make_maps(3), {"model": "tiny", "corpus": "texts"})
    monkeypatch.setattr(sys, "argv", ["draw_contact_sheets.py", str(tmp_path / "maps")])
    draw_contact_sheets.main()
    assert (tmp_path / "maps" / "sheets" / "sheet-01.png").read_bytes().startswith(b"\x89PNG")
