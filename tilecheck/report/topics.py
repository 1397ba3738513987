"""The pages of `tilecheck explain` that are not rules: verdicts, reasons, standing obligations."""

from __future__ import annotations

from collections.abc import Mapping

STANDING: Mapping[str, str] = {
    "S1": "arguments of which one is written do not overlap",
    "S2": "a written array does not overlap itself",
    "S3": "a grid axis that the kernel never reads is 1 if the kernel stores anything",
    "S4": "each array has fewer than 2^31 elements, unless a constant, a contract or a visible launch says so",
    "S5": "index arithmetic in 32 bits fits at the sizes of the launch (tile coordinates of cuTile excepted)",
    "S6": "an array whose values are used as integers, such as an index, holds int32 or int64",
    "S7": "where a Triton program updates arrays in place, the elements of all its arrays have one size, and "
    "all arrays begin at multiples of 16 bytes, or none does",
    "S8": "where the order of a Triton program's threads rests on it, a tile that is loaded has at least as "
    "many elements as the program has threads, which are 32 for each of `num_warps`",
}

_VERDICTS: Mapping[str, str] = {
    "proved": """
Every obligation of the kernel is discharged, for every launch that meets the standing obligations
(`tilecheck explain S1` to `S8`): any grid, any shapes, any strides, any values in memory.

A kernel is never called proved because something was not understood, or because time ran out.
""",
    "conditional": """
Every obligation is discharged for the launches that meet the printed conditions (`if ...`), the contracts
(`given: ...`) and the standing obligations (`tilecheck explain S1` to `S8`). It is a pass. It does not promise
that launches out of view meet them.

At a launch in view each requirement has one of five statuses:

    holds     the host's text shows it for every input
    caller    only the caller of the host function can see to it: "`run` relies on its caller for ..."
    unmet     some input breaks it, with neither a proof nor harm: the kernel is unknown(launch), no pass
    broken    a launch that breaks it was replayed and did harm: the kernel is violated
    unread    tilecheck does not understand the launch: the verdict stays, and the launch is counted

A launch through `tilecheck.host` is `guarded` as a whole: it is checked when it happens, and its text is not
looked at.

A contract is taken for true. `given:` says who states it (source, config, pack, gate) and who sees to it:

    holds     every launch in view shows it by its text
    guarded   every launch in view shows it or goes through `tilecheck.launch` or `tilecheck.verified`, which
              check it (contracts on values in memory only with `check_contracts`)
    promised  neither: it is somebody's word. If it is wrong, the kernel may race although it passes

`--require` says what is good enough; a kernel below it is named, and the run ends with exit code 3:

    conditional  any pass: the default
    launches     a pass with a launch in view, none of them unread, nothing unmet, no contract only promised
    proved       the verdict `proved`

Conditions are written so that they can be pasted, where the launching code is not yours to show them:

    # tilecheck: requires grid[0] <= cdiv(out.shape[0], T) -- the launcher takes one block for each tile
""",
    "trusted": """
The kernel would be proved or conditional, but for at least one obligation that was not proved and that has a
place inside an unsafe block. The author answers for it:

    with unsafe("slots are handed out by the scheduler, each to one block"):
        ct.scatter(cache, (slots, columns), rows)

`tilecheck audit` lists every such block with its reason. Races found by a replayed counterexample and
conflicts between arguments at a launch are listed by their own rules.
""",
    "violated": """
There is a counterexample, and it was replayed: the kernel's own syntax tree was run, block by block, with the
printed launch values, and the two blocks were seen to touch the printed element (or the operation was seen to
be undefined or out of range). A finding says where, with which values, and what would help.

A suppression takes the finding out of the exit code; the kernel stays violated.
""",
    "unknown": """
The kernel is neither proved nor refuted. That is not a pass: `tilecheck verify` ends with exit code 3. The
reason is one of a closed list; each has a page:

    tilecheck explain unknown/unsupported
    tilecheck explain unknown/budget
    tilecheck explain unknown/nonlinear
    tilecheck explain unknown/needs-contract
    tilecheck explain unknown/launch
    tilecheck explain unknown/vacuous
    tilecheck explain unknown/internal
""",
}

_REASONS: Mapping[str, str] = {
    "unsupported": """
The kernel uses a construct that tilecheck does not read. It is named after the colon and marked in the source.
What is not read is never taken to be harmless, so the whole kernel is undecided. Write the place in simpler
terms, or move it into a helper that tilecheck can read.
""",
    "budget": """
The solver used up its budget on an obligation. The budget counts solver steps, not seconds, so the answer is
the same on every machine. A `requires` that states what the launcher guarantees (a divisibility, an order
between sizes) usually makes the proof short.
""",
    "nonlinear": """
An index multiplies or divides by values that are only known at launch, in a way that none of the proofs
covers. Making one factor a compile-time constant (`ct.Constant[int]`), or stating with `requires` how the
factors relate, usually settles it.
""",
    "needs-contract": """
The proof depends on values that the kernel reads from memory, such as a table of offsets or slots. State what
the table guarantees, above the kernel:

    # tilecheck: requires increasing(offsets) -- prefix sums of lengths
    # tilecheck: requires distinct(slots, skip=-1) -- each slot belongs to one row

The report names contracts that may settle it. `tilecheck verify --propose` decides the kernel once more with
them, and names those that do.

The named contracts are:

    filled(t, c)           every element is c when the launch begins: flags, tickets, locks, counters
    within(t, low, high)   every element is at least low and less than high; with skip=-100, or equal to that
    increasing(t)          no element is less than the one before it
    distinct(t, skip=-1)   no two elements are equal, but for those equal to skip
    permutation(t)         the elements are the numbers from 0 to t.shape[0] - 1 in some order
    distinct_pairs(t)      no two rows of a table of two columns are equal
    prefix_sum(t, of=c)    t[0] == 0 and t[i + 1] == t[i] + c[i], and no element of c is negative
    disjoint(a, b, ...)    arrays, and the members of lists, share no memory (no proof needs it: see S1)

A sum with values from memory may also wrap in 32 bits: then the message names the `within` that bounds them, or
cast the value to 64 bits before adding.
""",
    "launch": """
The kernel is right under its conditions, and a launch in view may break one: the host's text admits an input
that does, and neither a proof nor harm was found. The report names the launch and the condition as `unmet`. An
assert or an early raise in the host function, or a size that it computes itself, settles it.
""",
    "vacuous": """
The premises of the proof contradict each other: no launch meets all `requires` of the kernel and its facts.
Everything follows from a contradiction, so nothing was proved. One of the `requires` is wrong.
""",
    "internal": """
Analysis of this kernel ended in a bug of tilecheck (exit code 4). The traceback was printed with the text of an
issue; please report it. Other kernels of the run are not affected.
""",
}


def topics() -> tuple[str, ...]:
    """Every word that has a page here."""
    return (*_VERDICTS, *(f"unknown/{reason}" for reason in _REASONS), *STANDING)


def topic_of_reason(reason: str) -> str:
    """The page for a kernel's reason: `unsupported:match statement` has `unknown/unsupported`."""
    word = reason.partition(":")[0]
    return f"unknown/{word}" if word in _REASONS else "unknown"


def topic_page(word: str) -> str | None:
    """The page of a verdict, a reason of `unknown`, or a standing obligation; None if there is none."""
    key = word.lower()
    if key in _VERDICTS:
        return f"# {key}\n{_VERDICTS[key]}"
    reason = key.removeprefix("unknown/").partition(":")[0]
    if reason in _REASONS:
        return f"# unknown/{reason}\n{_REASONS[reason]}"
    code = word.upper()
    if code in STANDING:
        duty = f"Every launch must see to it that {STANDING[code]}."
        return f"# {code}: a standing obligation\n\n{duty}\n{_STANDING_PAGE}"
    return None


_STANDING_PAGE = """
Standing obligations hold for all kernels. They are checked at the launches that tilecheck can see, and
`tilecheck audit` lists the ones that a verdict rests on. They never turn proved into conditional.
"""
