"""Models are headed by their names, whatever folders they were loaded from."""

import io

import pytest
from rich.console import Console

from headscope.view.headings import name_model
from headscope.view.page import render_page
from headscope.view.table_report import print_table
from view.tables import head_table


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("minilm", "minilm"),
        ("google-bert/bert-base-cased", "google-bert/bert-base-cased"),
        ("/data/models/tiny-llm", "tiny-llm"),
        ("./tiny-llm/", "tiny-llm"),
        ("../models/tiny-llm", "tiny-llm"),
        ("~/tiny-llm", "tiny-llm"),
        ("models/of/mine/tiny-llm", "tiny-llm"),
        ("BERT-base shape", "BERT-base shape"),
        ("/", "/"),
        (".", "."),
        ("adapter of /models/bert", "adapter of bert"),
        ("placebo (seed 3) of adapter of ./lora/bert", "placebo (seed 3) of adapter of bert"),
        ("/box of models/bert", "bert"),
        ("random weights (seed 1) of owner/name", "random weights (seed 1) of owner/name"),
    ],
)
def test_a_folder_is_called_by_its_name_and_a_hub_id_as_it_is(model, name) -> None:
    assert name_model(model) == name


@pytest.mark.parametrize(("count", "said"), [(0, ""), (1203, "Documents that repeat others: 1,203. They share")])
def test_copies_are_said_on_the_terminal_and_on_the_page(count: int, said: str) -> None:
    table = head_table().assign_attrs(words=1511, tokens_unknown=0, documents_repeated=count)
    text = io.StringIO()
    print_table(table, Console(file=text, width=150))
    for shown in (text.getvalue(), render_page(table, figures={})):
        assert said in shown
        assert ("Documents that repeat" in shown) == bool(count)
