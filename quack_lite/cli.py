"""The command quack-lite: argument parsing only. Each command imports what it runs."""

import argparse
import sys
from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; 0 if all is well. A bad argument or a missing package is one line on stderr and exit code 2."""
    arguments = _parser().parse_args(argv)
    try:
        return arguments.run(arguments) or 0
    except ModuleNotFoundError as error:
        print(
            f"quack-lite {arguments.command}: {error.name} is not installed here; `make lab` installs it.",
            file=sys.stderr,
        )
    except ValueError as error:
        print(f"quack-lite {arguments.command}: {error}", file=sys.stderr)
    return 2


def _doctor(arguments):
    if arguments.workshop is not None:
        from quack_lite import workshop

        return workshop.run(arguments.workshop, json=arguments.json)
    from quack_lite import doctor

    return doctor.run(json=arguments.json)


def _start(arguments):
    from quack_lite import desk

    return desk.start(arguments.number, browser=not arguments.no_browser)


def _grade(arguments):
    from quack_lite.grading import report

    options = {"proofs": arguments.proofs, "parked": arguments.parked, "json": arguments.json, "junit": arguments.junit}
    return report.grade(arguments.targets, **options)


def _report(arguments):
    from quack_lite.grading import batch

    return batch.report(arguments.folder, html=arguments.html, csv=arguments.csv)


def _progress(arguments):
    from quack_lite.grading import standing

    return standing.show()


def _hint(arguments):
    from quack_lite.grading import hints

    return hints.hint(arguments.task)


def _reset(arguments):
    from quack_lite import desk

    return desk.reset(arguments.number)


def _export(arguments):
    from quack_lite import transfer

    return transfer.pack(arguments.file)


def _import(arguments):
    from quack_lite import transfer

    return transfer.unpack(arguments.file)


def _bench(arguments):
    if arguments.summary:
        from quack_lite import ratios

        return ratios.show(json=arguments.json)
    from quack_lite.bench import command

    if arguments.all:
        return command.run_all(arguments.seconds, json=arguments.json)
    return command.run(arguments.operator, arguments.dtype, backward=arguments.backward, json=arguments.json)


def _verify(arguments):
    from quack_lite.evidence import verify

    return verify.run(arguments.only, arguments.seconds)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="quack-lite", description="Memory-bound GPU kernels, a course.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def command(name, run, about):
        sub = commands.add_parser(name, help=about, description=about)
        sub.set_defaults(run=run)
        return sub

    doctor = command("doctor", _doctor, "Say what this machine can do, and what to do where something is not right.")
    doctor.add_argument("--json", action="store_true", help="the same as JSON")
    about = "also what a workshop of so many (30 unless given) needs: for the day before"
    doctor.add_argument("--workshop", metavar="PEOPLE", nargs="?", type=int, const=30, help=about)

    start = command("start", _start, "Copy an exercise to work/ and open it in JupyterLab.")
    start.add_argument("number", metavar="NN", help="the number of the exercise, as 05 or project_a")
    start.add_argument("--no-browser", action="store_true", help="print the address and open nothing")

    grade = command("grade", _grade, "Grade the answers in work/.")
    about = "exercises (05), tasks (tails.width) or notebooks; all of work/ without"
    grade.add_argument("targets", nargs="*", metavar="NN", help=about)
    mode = grade.add_mutually_exclusive_group()
    mode.add_argument("--proofs", action="store_true", help="grade solutions, stubs and planted wrong answers instead")
    mode.add_argument("--parked", action="store_true", help="only kernel tasks that wait for a GPU")
    grade.add_argument("--json", action="store_true", help="print the results as JSON")
    grade.add_argument("--junit", metavar="FILE", help="write the results to FILE as JUnit's XML")

    report = command("report", _report, "Grade a folder of submissions: who has done what, and the usual mistakes.")
    report.add_argument("folder", metavar="SUBMISSIONS", help="a folder or a notebook for each learner, by their names")
    written = {"nargs": "?", "metavar": "FILE"}
    report.add_argument("--html", const="report.html", help="write a page (report.html unless given)", **written)
    about = "write a line for each learner and task (report.csv unless given)"
    report.add_argument("--csv", const="report.csv", help=about, **written)

    command("progress", _progress, "Show lessons, tasks and points, and what to do next.")

    hint = command("hint", _hint, "Show the next hint of a task, and after the last the solution.")
    hint.add_argument("task", metavar="TASK", help="the task's id, as tails.width")

    reset = command("reset", _reset, "Put an exercise back as it came; yours is kept in work/aside/ with the date.")
    reset.add_argument("number", metavar="NN", help="the number of the exercise, as 05 or project_a")

    export = command("export", _export, "Write work/ and your progress to a file for the next machine.")
    export.add_argument("file", metavar="FILE", nargs="?", help="quack-lite-DATE.zip in the course's folder without it")

    bring = command("import", _import, "Take work/ and your progress from a file that export wrote.")
    bring.add_argument("file", metavar="FILE", help="nothing here is lost: what it replaces is kept in work/aside/")

    bench = command("bench", _bench, "Measure operators against the ceilings and their peers, and write records.")
    what = bench.add_mutually_exclusive_group(required=True)
    what.add_argument("operator", metavar="OPERATOR", nargs="?", help="as softmax")
    what.add_argument("--all", action="store_true", help="whatever has no record that holds; again goes on from there")
    what.add_argument("--summary", action="store_true", help="print what the records say; needs no GPU")
    about = "print the records as JSON, and nothing else on stdout: what an issue about another GPU takes"
    bench.add_argument("--json", action="store_true", help=about)
    bench.add_argument("--backward", action="store_true", help="of OPERATOR, the backward")
    bench.add_argument("--dtype", default="bf16", help="of OPERATOR: bf16, fp16 or fp32 (bf16 unless given)")
    bench.add_argument("--seconds", type=float, default=480, help="of --all: stop before these are over (480)")

    verify = command("verify", _verify, "Run every kernel that has no receipt on this GPU, and write the receipts.")
    verify.add_argument("--only", metavar="NAME", default="", help="kernels whose names contain this")
    verify.add_argument("--seconds", type=float, default=480, help="stop by itself before these are over (480)")
    return parser
