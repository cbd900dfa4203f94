#!/bin/sh
# What libtacho.so and its objects must look like:
#   check.sh exports NM LIBRARY ABI_PROPERTIES    exported are the functions of tacho.h and nothing else
#   check.sh glibc OBJDUMP LIBRARY CEILING        no glibc symbol is newer than CEILING; prints the newest
#   check.sh symbols OBJDUMP LIBRARY              symbols of every function for profiles, but no lines of source
#   check.sh weak NM OBJECT...                    no weak symbols: the linker may keep one copy for all CPUs
#   check.sh above ISA OBJDUMP OBJECT...          no instruction that an instruction set lacks and a later one has
set -eu
check=$1
tool=$2
shift 2

case $check in
exports)
    exported=$("$tool" -D --defined-only "$1" | awk '{ print $3 }' | sort)
    declared=$(sed -n 's/^function\.\(.*\)=.*/\1/p' "$2" | sort)
    if [ "$exported" != "$declared" ]; then
        printf 'exported:\n%s\ndeclared in tacho.h:\n%s\n' "$exported" "$declared"
        exit 1
    fi
    printf '%s functions\n' "$(printf '%s\n' "$declared" | wc -l)"
    ;;
glibc)
    newest=$("$tool" -T "$1" | grep -o 'GLIBC_[0-9.]*' | sed 's/GLIBC_//' | sort -u -V | tail -n 1)
    printf 'newest glibc symbol: %s, ceiling: %s\n' "$newest" "$2"
    [ "$(printf '%s\n%s\n' "$newest" "$2" | sort -V | tail -n 1)" = "$2" ]
    ;;
symbols)
    sections=$("$tool" -h "$1" | awk '$2 ~ /^\./ { print $2 }')
    lines=$(printf '%s\n' "$sections" | grep '^\.debug_' || true)
    [ -z "$lines" ] || { printf 'carried along:\n%s\n' "$lines"; exit 1; }
    printf '%s\n' "$sections" | grep -q '^\.gnu_debuglink$' || { echo 'no link to libtacho.so.debug'; exit 1; }
    functions=$("$tool" -t "$1" | grep -c ' F \.text' || true)
    printf '%s functions have symbols\n' "$functions"
    [ "$functions" -ge 100 ]
    ;;
weak)
    found=$("$tool" -C "$@" | grep ' [WVuw] ' || true)
    [ -z "$found" ] || { printf '%s\n' "$found"; exit 1; }
    printf 'none in %s objects\n' "$#"
    ;;
above)
    isa=$tool
    tool=$1
    shift
    tiles='tile|[[:space:]]tdp|%tmm'
    bfloats="v(dpbf16|cvtne2?ps2?bf16)|$tiles"
    vnni="vpdp(busd|wssd)|$bfloats"
    case $isa in
    scalar) lacks='[yz]mm[0-9]|[[:space:]]v[a-z0-9]+[[:space:]]' ;;
    avx2) lacks="%zmm|%k[0-7]|%[xy]mm(1[6-9]|2[0-9]|3[01])|$vnni" ;;
    avx512) lacks=$vnni ;;
    avx512_vnni) lacks=$bfloats ;;
    avx512_bf16) lacks=$tiles ;;
    *) echo "check.sh: above $isa there is nothing" >&2; exit 2 ;;
    esac
    found=$("$tool" -d --no-show-raw-insn "$@" | cut -f2- | grep -v '^[0-9a-f]* <' | grep -v '^/' |
        sed 's/<.*>//' | grep -E "$lacks" || true)
    [ -z "$found" ] || { printf '%s\n' "$found" | head -n 20; exit 1; }
    printf 'none in %s objects\n' "$#"
    ;;
*)
    echo "check.sh: unknown check $check" >&2
    exit 2
    ;;
esac
