"""The keys of `[tool.tilecheck]`: what each comes to, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from tilecheck.config.files import Configs, load
from tilecheck.config.settings import Settings
from tilecheck.errors import UsageError
from tilecheck.model import Severity
from tilecheck.options import DEFAULT_BUDGET, ConfigChoice


@pytest.fixture
def read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)

    def settings(text: str, **choice: object) -> Settings:
        (tmp_path / "pyproject.toml").write_text(f"[tool.tilecheck]\n{text}\n")
        return Configs(ConfigChoice(**choice)).of_run()  # type: ignore[arg-type]

    return settings


def why(settings: Settings, code: str, file: str = "k.py") -> str | None:
    return settings.why_ignored(code, (settings.folder / file).as_posix())


def test_the_defaults(read) -> None:
    settings = read("")
    assert (settings.budget, settings.fail_on, settings.format, settings.jobs) == (
        DEFAULT_BUDGET, Severity.ERROR, None, 0,
    )  # fmt: skip
    assert why(settings, "TC201") is None
    assert settings.level("TC501") is None
    assert settings.includes("/anything.py")


@pytest.mark.parametrize(
    ("text", "steps"),
    [('"2000k"', 2_000_000), ('"3M"', 3_000_000), ("1500", 1500), ('"1500"', 1500), ('"4294M"', 4_294_000_000)],
)
def test_budgets(read, text: str, steps: int) -> None:
    assert read(f"budget = {text}").budget == steps


def test_plain_values(read) -> None:
    settings = read('fail-on = "info"\nformat = "concise"\njobs = 3')
    assert (settings.fail_on, settings.format, settings.jobs) == (Severity.INFO, "concise", 3)
    assert read('jobs = "auto"').jobs == 0


def test_a_demand_that_is_met(read) -> None:
    assert read('required-version = ">=0.1,<1"').file is not None


def test_ignored_rules_say_who_ignores_them(read) -> None:
    settings = read('ignore = ["TC2", "tile-outside-array"]')
    assert why(settings, "TC201") == "`ignore` of pyproject.toml"
    assert why(settings, "TC302") == "`ignore` of pyproject.toml"
    assert why(settings, "TC303") is None


def test_what_is_not_selected_is_ignored(read) -> None:
    settings = read('select = ["TC2"]')
    assert why(settings, "TC201") is None
    assert why(settings, "TC302") == "not in `select` of pyproject.toml"


@pytest.mark.parametrize(
    ("select", "ignore", "counts"),
    [
        (["TC2"], ["TC201"], False),
        (["TC201"], ["TC2"], True),  # the closer one counts
        (["TC201"], ["TC201"], False),
        (["TC3", "TC201"], ["TC"], True),
        (["write-write-overlap"], ["tc2"], True),
    ],
)
def test_the_entry_that_names_a_rule_most_closely_counts(read, select, ignore, counts: bool) -> None:
    assert (why(read(f"select = {select}\nignore = {ignore}"), "TC201") is None) is counts


def test_ignores_for_files_have_a_reason(read) -> None:
    settings = read('[tool.tilecheck.per-file-ignores]\n"old/*.py" = { rules = ["TC5"], reason = "gone soon" }')
    assert why(settings, "TC501", "old/k.py") == "gone soon"
    assert why(settings, "TC501", "new/k.py") is None
    assert why(settings, "TC201", "old/k.py") is None


def test_levels(read) -> None:
    settings = read('[tool.tilecheck.levels]\nTC5 = "error"\noutput-not-filled = "info"\nTC105 = "ignore"')
    assert settings.level("TC501") is Severity.INFO
    assert settings.level("TC502") is Severity.ERROR
    assert settings.level("TC105") is None
    assert why(settings, "TC105") == "`levels` of pyproject.toml"
    assert why(settings, "TC501") is None


def test_a_level_does_not_select(read) -> None:
    settings = read('[tool.tilecheck.levels]\nTC502 = "error"', values=(("select", ["TC2"], "--select"),))
    assert why(settings, "TC502") == "not in `select` of --select"


def test_a_level_is_closer_than_the_family_that_is_ignored(read) -> None:
    settings = read('[tool.tilecheck.levels]\nTC5 = "ignore"\nTC502 = "error"')
    assert why(settings, "TC501") == "`levels` of pyproject.toml"
    assert why(settings, "TC502") is None


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("budgt = 1", "pyproject.toml: `[tool.tilecheck]` has no key `budgt`", "did you mean `budget`?"),
        ("arch = 1", "has no key `arch`", "known are `required-version`"),
        ("budget = true", "`budget` must be a number of steps", None),
        ("budget = 0", "`budget` must be a number of steps", None),
        ('budget = "5000M"', "at most 4294M", None),
        ('budget = "2 000k"', "`budget` must be a number of steps", None),
        ('fail-on = "unknown"', "`fail-on` must be error, warning or info", None),
        ("fail-on = 3", "`fail-on` must be error, warning or info", None),
        ('format = "consise"', "`format` must be one of", "did you mean `concise`?"),
        ("jobs = 0", "`jobs` must be a number of processes", None),
        ("jobs = true", "`jobs` must be a number of processes", None),
        ("select = []", "`select` must be a list of at least one rule", '`select = ["TC"]` selects all'),
        ('select = "TC2"', "`select` must be a list of texts", None),
        ("select = [2]", "`select` must be a list of texts", None),
        ('select = ["TC8"]', "`select`: no rule has the code or name `TC8`", "`tilecheck rules` lists"),
        ('ignore = ["T"]', "no rule has the code or name `T`", "`tilecheck rules` lists the rules"),
        ('ignore = ["write-write-overlp"]', "no rule has", "did you mean `write-write-overlap`?"),
        ('ignore = ["TC901"]', "TC901 cannot be ignored", "tilecheck explain TC901"),
        ('ignore = ["missing-reason"]', "TC903 cannot be ignored", None),
        ('include = ["k[z-a].py"]', "`include` holds a text that is no pattern", None),
        ('required-version = ">=9"', "demands tilecheck >=9, and this is tilecheck", "pip install"),
        ('required-version = "soon"', "`soon` is no demand on a version", 'write for example ">=0.1,<0.2"'),
        ('levels = "error"', "`levels` must be a table", "write `[tool.tilecheck.levels]`"),
        ('[tool.tilecheck.levels]\nTC5 = "bad"', "`TC5` must be error, warning, info or ignore", None),
        ('[tool.tilecheck.levels]\nTC901 = "ignore"', "TC901 cannot be ignored", None),
        ('[tool.tilecheck.levels]\nTC908 = "info"', "TC908 has no level of its own", "it is an error on CI"),
        (
            '[tool.tilecheck.levels]\nTC201 = "warn"',
            "TC201 (write-write-overlap) is an error, and cannot be made warn",
            "ignore it where it may stand",
        ),
        ('[tool.tilecheck.levels]\nTC1 = "info"', "TC101 (shared-array-written) is an error", None),
        ('[tool.tilecheck.levels]\nTC = "warning"', "is an error, and cannot be made warning", None),
        (
            '[tool.tilecheck.per-file-ignores]\n"*.py" = ["TC5"]',
            "`*.py` must be a table",
            'write `"*.py" = { rules = ["TC501"], reason = "why" }`',
        ),
        ('[tool.tilecheck.per-file-ignores]\n"*.py" = { rules = ["TC5"] }', "`*.py` gives no reason", None),
        ('[tool.tilecheck.per-file-ignores]\n"*.py" = { rules = ["TC5"], reason = " " }', "no reason", None),
        ('[tool.tilecheck.per-file-ignores]\n"*.py" = { reason = "r" }', "`*.py` names no rule", None),
        (
            '[tool.tilecheck.per-file-ignores]\n"*.py" = { codes = ["TC5"], reason = "r" }',
            "`*.py` has no key `codes`",
            None,
        ),
    ],
)  # fmt: skip
def test_what_is_not_understood_is_refused(read, text: str, message: str, hint: str | None) -> None:
    with pytest.raises(UsageError) as raised:
        read(text)
    assert message in raised.value.message
    assert hint is None or hint in (raised.value.hint or "")


def test_a_family_may_be_ignored_that_has_rules_which_may_not(read) -> None:
    assert why(read('ignore = ["TC9"]'), "TC905") is not None


# ---- flags and variables -----------------------------------------------------------------------------------


def test_flags_take_the_place_of_what_a_file_says(read) -> None:
    said = (("budget", "1k", "TILECHECK_BUDGET"), ("budget", "2k", "--config"), ("budget", "3k", "--budget"))
    for number in (1, 2, 3):
        assert read('budget = "9k"', values=said[:number]).budget == number * 1000
    assert read('select = ["TC2"]', values=(("select", ["TC3"], "--select"),)).select == ("TC3",)


def test_a_flag_adds_to_what_a_file_ignores_and_excludes(read) -> None:
    values = (("ignore", ["TC3"], "--ignore"), ("extend-exclude", ["wip"], "--exclude"))
    settings = read('ignore = ["TC2"]\nexclude = ["old"]', values=values)
    assert [why(settings, code) for code in ("TC201", "TC302", "TC401")] == [
        "`ignore` of pyproject.toml", "`ignore` of --ignore", None,
    ]  # fmt: skip
    assert [pattern.text for pattern in settings.exclude] == ["old", "wip"]


def test_a_wrong_value_names_who_said_it(read) -> None:
    with pytest.raises(UsageError, match=r"^TILECHECK_BUDGET: `budget` must be a number of steps"):
        read("", values=(("budget", "lots", "TILECHECK_BUDGET"),))


# ---- files -------------------------------------------------------------------------------------------------


def test_isolated_reads_no_file(read) -> None:
    assert read('budget = "1k"', isolated=True).budget == DEFAULT_BUDGET
    assert read("nonsense = 1", isolated=True, values=(("budget", "5k", "--budget"),)).budget == 5000


def test_a_named_file_is_read_alone(read, tmp_path: Path) -> None:
    (tmp_path / "ci.toml").write_text('[tool.tilecheck]\nbudget = "7k"\n')
    assert read("nonsense = 1", file="ci.toml").budget == 7000
    (tmp_path / "none.toml").write_text("[tool.other]\n")
    with pytest.raises(UsageError, match=r"none.toml has no table `\[tool.tilecheck\]`"):
        read("", file="none.toml")
    with pytest.raises(UsageError, match="cannot read"):
        read("", file="missing.toml")


def test_very_deep_folders(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.tilecheck]\nbudget = "4k"\n')
    assert Configs().of(f"{tmp_path}/{'d/' * 1500}k.py").budget == 4000


def test_a_file_that_is_no_table(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("tool = 'tilecheck'\n")
    assert load(tmp_path / "pyproject.toml") is None
    (tmp_path / "pyproject.toml").write_bytes(b"tilecheck = '\xff'\n")
    with pytest.raises(UsageError, match="is no TOML"):
        load(tmp_path / "pyproject.toml")
