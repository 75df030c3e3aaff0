#!/bin/sh
# Tests look at reports in a real browser. Install Debian's chromium if there is none and if that
# can be done without asking anybody; if not, say so. This never fails: only those tests are skipped.
#
# FAIRPERM_BROWSER names a browser that is somewhere else.

names=${FAIRPERM_BROWSER:-chromium chromium-browser google-chrome google-chrome-stable}
for name in $names; do
    if command -v "$name" >/dev/null 2>&1; then
        exit 0
    fi
done

give_up() {
    echo "No browser: $1. The tests that open reports in one will be skipped." >&2
    exit 0
}

[ -z "${FAIRPERM_BROWSER:-}" ] || give_up "FAIRPERM_BROWSER is $FAIRPERM_BROWSER, which does not run"
command -v apt-get >/dev/null 2>&1 || give_up "chromium is not installed and there is no apt-get"
if [ "$(id -u)" = 0 ]; then
    as_root=""
elif command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then
    as_root="sudo -n"
else
    give_up "chromium is not installed, and installing it takes root"
fi

echo "Installing chromium for the tests of the report ..." >&2
export DEBIAN_FRONTEND=noninteractive
install="apt-get install --yes --quiet --quiet --no-install-recommends chromium"
if ! $as_root $install >/dev/null 2>&1; then
    $as_root apt-get update --quiet --quiet >/dev/null 2>&1
    $as_root $install >/dev/null 2>&1 || give_up "apt-get could not install chromium"
fi
command -v chromium >/dev/null 2>&1 || give_up "apt-get installed chromium, but it does not run"
