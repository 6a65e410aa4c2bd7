from toolbench.engine.json_paths import json_path


def test_paths_quote_odd_names() -> None:
    assert json_path(["ops", 0, "a.b", "c"]) == '$.ops[0]["a.b"].c'
    assert json_path([]) == "$"
