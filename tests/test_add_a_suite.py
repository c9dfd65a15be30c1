"""docs/add_a_suite.md, followed word by word by a stranger with a copy of the project."""

import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def test_the_page_s_suite_runs_as_the_page_says(tiny_model, tmp_path):
    page = (ROOT / "docs" / "add_a_suite.md").read_text("utf-8")
    blocks = dict(re.findall(r"```(json|python|bash)\n(.*?)```", page, re.DOTALL))
    project = tmp_path / "project"
    project.mkdir()
    for part in ("scope", "recipes"):
        shutil.copytree(ROOT / part, project / part, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "evaluate.py", project)
    (project / "capitals.jsonl").write_text(blocks["json"], "utf-8")
    (project / "scope/evaluation/suites/capitals.py").write_text(blocks["python"], "utf-8")
    words = shlex.split(blocks["bash"])
    assert words[:2] == ["python", "evaluate.py"]
    short = [f"model.base={tiny_model}", "evaluation.max_new_tokens=16", "output_dir=run"]
    command = [sys.executable, "-P", "-c", RUN, *words[2:], *short]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, timeout=1200)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Lost to the hint" in done.stdout and "capitals read: 3" in done.stdout
    folder = project / "run/scope/evaluate/capitals"
    results = json.loads((folder / "results.json").read_text())
    assert results["items"] == 3 and set(results["systems"]["base"]["rates"]) == {"plain", "hinted", "lost"}
    assert set(results["slices"]["country"]) == {"France", "Italy", "Portugal"}


#: Runs evaluate.py of the working folder with its own copy of the package, not the installed one.
RUN = (
    "import sys, runpy; sys.path.insert(0, '.'); sys.argv[0] = 'evaluate.py'; "
    "runpy.run_path('evaluate.py', run_name='__main__')"
)
