"""Models are headed by their names, whatever folders they were loaded from."""

import pytest

from headscope.view.headings import name_model


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
    ],
)
def test_a_folder_is_called_by_its_name_and_a_hub_id_as_it_is(model, name) -> None:
    assert name_model(model) == name
