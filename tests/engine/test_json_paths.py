from toolbench.engine.json_paths import render_json_path


def test_paths_quote_odd_names() -> None:
    assert render_json_path(["ops", 0, "a.b", "c"]) == '$.ops[0]["a.b"].c'
    assert render_json_path([]) == "$"
