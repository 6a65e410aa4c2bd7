from toolbench.engine.json_paths import render_json_path


def test_render_json_path_quotes_names_with_special_characters() -> None:
    assert render_json_path(["ops", 0, "a.b", "c"]) == '$.ops[0]["a.b"].c'
    assert render_json_path([]) == "$"
