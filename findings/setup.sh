# What the findings share. Each of them sources this file, says in `finding` what surprises, names its packages in
# `install`, and shows it by the Python that `run` reads.

constraints=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)/constraints.txt
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export HF_HUB_OFFLINE=1 # the models are made from their configurations
export TQDM_DISABLE=1

# The behaviour, in one sentence.
finding() {
    printf '%s\n' "$1"
}

# Install packages, each as NAME==VERSION, into an environment in the temporary folder, and print their versions.
install() {
    "${PYTHON:-python3}" -m venv "$folder/venv"
    "$folder/venv/bin/python" -m pip install --quiet --constraint "$constraints" "$@"
    "$folder/venv/bin/python" -I - "${@%%==*}" <<'EOF'
import sys
from importlib.metadata import version

print("Python", *sys.version.split()[:1], *(f"| {name} {version(name)}" for name in sys.argv[1:]))
EOF
}

# Run a program, from its own file since Triton reads the source of its kernels; its assertions say what has changed.
run() {
    cat >"$folder/finding.py"
    if ! (cd "$folder" && venv/bin/python -I finding.py); then
        printf '%s: the libraries no longer behave as this finding says; the lines above say how.\n' "$0" >&2
        exit 1
    fi
}
