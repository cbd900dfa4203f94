#!/bin/sh
# Lists what a header declares, for abi_dump.cpp: CONSTANT(..) of every numeric #define, FUNCTION(..) of every exported
# function, STRUCT(..) and MEMBER(.., ..) of every struct. The header stays plain C in the style of tacho.h.
set -eu
awk '
    /^#define TACHO_[A-Z0-9_]+ [0-9]/ { print "CONSTANT(" $2 ")"; next }
    /^#/ { next }
    { text = text $0 "\n" }
    END {
        while ((from = index(text, "/*")) > 0) {
            rest = substr(text, from + 2)
            text = substr(text, 1, from - 1) " " substr(rest, index(rest, "*/") + 2)
        }
        gsub(/[ \n]+/, " ", text)
        count = split(text, parts, ";")
        for (i = 1; i <= count; i++) {
            part = parts[i]
            if (part ~ /TACHO_API /) {
                sub(/\(.*/, "", part); sub(/.*[ *]/, "", part)
                print "FUNCTION(" part ")"
                continue
            }
            if (part ~ /typedef struct /) { inside = 1; members = 0; sub(/.*\{/, "", part) }
            if (inside && part ~ /^ \} /) {
                inside = 0
                sub(/^ \} /, "", part)
                print "STRUCT(" part ")"
                for (j = 0; j < members; j++) { print "MEMBER(" part ", " member[j] ")" }
                continue
            }
            sub(/\[.*/, "", part); sub(/.*[ *]/, "", part)
            if (inside && part != "" && part !~ /[{}]/) { member[members++] = part }
        }
    }' "$1"
