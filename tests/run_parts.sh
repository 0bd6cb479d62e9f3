#!/usr/bin/env bash
# Runs the parts of `make test` one after the other with the interpreter given, shows what each prints and how long it
# took, and fails if any of them failed. WORKERS: processes of a part, 2 unless set.
cd "$(dirname "$0")/.."
python=$1
summary=()
failed=0

installed() { "$python" -c "import importlib.util as u, sys; sys.exit(u.find_spec('$1') is None)"; }

part() { # NAME BUDGET_MINUTES COMMAND...
  local name=$1 budget=$2 start=$SECONDS status=0
  shift 2
  printf '\n=== %s: %s\n' "$name" "$*"
  "$@" || status=$?
  summary+=("$(printf '%-10s %-6s %4d s   budget %d s' "$name" "$([ $status = 0 ] && echo ok || echo FAILED)" \
    $((SECONDS - start)) $((budget * 60)))")
  [ $status = 0 ] || failed=1
}

tool() { # NAME MODULE ARGUMENTS...: a linter, which a bare GPU machine may lack
  if installed "$2" || [ "${CI:-}" = true ]; then
    part "$1" 1 "$python" -m "${@:2}"
  else
    summary+=("$(printf '%-10s is not installed here: skipped' "$1")")
  fi
}

pytest=("$python" -m pytest -q)
spread=()  # tests over processes
whole=()   # the same, but all cells of a notebook in one process
if installed xdist; then
  spread=(-n "${WORKERS:-2}")
  whole=("${spread[@]}" --dist loadfile)
fi

tool ruff ruff check .
tool codespell codespell_lib
part compile 8 "${pytest[@]}" "${spread[@]}" -m compile
part property 1 "${pytest[@]}" "${spread[@]}" tests/test_tiling.py
part rest 5 "${pytest[@]}" "${spread[@]}" -m "not compile" --ignore=tests/test_tiling.py --ignore=tests/test_browser.py \
  --ignore=tests/test_nbgrader.py
part browser 3 "${pytest[@]}" tests/test_browser.py
part nbgrader 5 "${pytest[@]}" tests/test_nbgrader.py
part nbval 6 "${pytest[@]}" "${whole[@]}" --nbval --nbval-current-env notebooks solutions
part proofs 5 "$python" -m quack_lite grade --proofs

printf '\n=== times\n'
printf '%s\n' "${summary[@]}"
exit $failed
