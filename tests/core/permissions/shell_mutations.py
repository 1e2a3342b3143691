"""Random texts around the program `canary`: calls of it, inside constructs and marks that may hide it."""

from __future__ import annotations

import random

NAMES = (
    *("canary", "'canary'", '"canary"', "can''ary", 'c"anar"y', "c\\anary", "./bin/canary", "$PWD/bin/canary"),
    *("bin/../bin/canary", "$'canary'", "can\\\nary", '"can"ary', "canary x", "canary 'a b' \"c\"", "canary $X"),
    *("{canary,x}", "./bin/c*y", "./b?n/canary", "$C", '"$C"', "${C}", "can$Z", "${Q:-canary}", "$(echo canary)"),
)
AROUND = (
    *(
        "{}",
        "{}\n",
        "\n{}",
        "{};",
        "; true",
        "true; {}",
        "true\n{}",
        "true && {}",
        "false || {}",
        "true | {}",
        "true & {}",
    ),
    *(
        "! {}",
        "time {}",
        "time -p {}",
        "({})",
        "( {} )",
        "{{ {}; }}",
        "{{ {}\n}}",
        "if {}; then :; fi",
        "if true; then {}; fi",
    ),
    *("if true\nthen\n{}\nfi", "while {}; do break; done", "until {}; do break; done", "for i in 1; do {}; done"),
    *("for i in a\ndo {}\ndone", "case x in x) {};; esac", "case x in (y) :;; *) {} ;; esac", "case x in x) {}\nesac"),
    *("f() {{ {}; }}; f", "f() ( {} )\nf", "function f {{ {}; }}; f", ": $({})", ': "$({})"', ": `{}`", ': "`{}`"'),
    *("echo a$({})b", "X=$({})", "X=`{}` :", 'X="$({})"', "cat <({})", ": >({})", "cat < <({})", '[ "$({})" ]'),
    *(
        "[[ -n $({}) ]]",
        "eval '{}'",
        'eval "{}"',
        "eval {}",
        "sh -c '{}'",
        'sh -c "{}"',
        "bash -c '{}'",
        "dash -c '{}'",
    ),
    *(
        "env {}",
        "env A=1 {}",
        "nice {}",
        "nice -n 3 {}",
        "timeout 5 {}",
        "nohup {}",
        "command {}",
        "exec {}",
        "setsid {}",
    ),
    *("X=1 {}", "X= {}", "X='a b' Y=\"c\" {}", ">/dev/null {}", "2>/dev/null {}", "2>&- {}", "<&- {}", "</dev/null {}"),
    *(">/dev/null 2>&1 {}", "&>/dev/null {}", "{} >/dev/null", "{} 2>&1 | cat", "{} &", "{} && true", "{} || true"),
    *("cat <<E\nx\nE\n{}", "cat <<'E'\n'\nE\n{}", "cat <<E\n$({})\nE", "cat <<E\n`{}`\nE", "cat <<E; {}\nx\nE"),
    *(
        'cat <<E | {}\n"\nE',
        "cat <<-E\n\tx\n\tE\n{}",
        "cat <<E &&\nx\nE\n{}",
        "sh <<E\n{}\nE",
        "bash <<< '{}'",
        "echo '{}' | sh",
    ),
    *("# x\n{}", "# don't\n{}", 'true # "\n{}', ": 'a\nb'; {}", ': "a\nb"; {}', ": \\\n; {}", ": a \\\n b\n{}"),
    *("trap '{}' EXIT", "echo x | xargs {}", "echo x | xargs -n 1 sh -c '{}'", "find . -maxdepth 0 -exec {} \\;"),
    *(
        ": ${{X:-$({})}}",
        ': "${{X:-`{}`}}"',
        ": $((1)) ; {}",
        "{}\n}}",
        "{{ {} }}",
        ": {{ ; {}",
        ": ] ; {}",
        "echo then; {}",
    ),
    *("set -- a; {}", "a=(1 2); {}", "a=($({}))", "{} <<E\n'\nE", "coproc {}", "true |& {}", ": a#b; {}", ": '#'; {}"),
)
MARKS = (
    *(
        "'",
        '"',
        "\\",
        "$",
        "`",
        "(",
        ")",
        "{",
        "}",
        ";",
        "&",
        "|",
        "<",
        ">",
        "#",
        "\n",
        " ",
        "\t",
        "=",
        "*",
        "?",
        "[",
        "]",
    ),
    *(
        "!",
        "~",
        "\\\n",
        "''",
        '""',
        "$(",
        "${",
        "))",
        "((",
        "<<",
        "E",
        "<<E",
        "<<'E'",
        "&&",
        "||",
        ";;",
        "esac",
        "done",
    ),
    *(
        "fi",
        "then",
        "do",
        "in",
        "x",
        "#",
        "# ",
        "'$'",
        "$'",
        '$"',
        "\\'",
        '\\"',
        "\nE\n",
        "[[",
        "]]",
        "&>",
        ">&",
        "-",
        "$X",
    ),
)


def text(source: random.Random) -> str:
    """Return a text that may run `canary`."""
    made = source.choice(NAMES)
    for _ in range(source.choice((1, 1, 2, 2, 3))):
        made = source.choice(AROUND).replace("{{", "\0").replace("}}", "\1").replace("{}", made)
        made = made.replace("\0", "{").replace("\1", "}")
    for _ in range(source.choice((0, 1, 1, 2, 3))):
        at = source.randrange(len(made) + 1)
        is_left_out = source.random() < 0.3
        made = made[:at] + ("" if is_left_out else source.choice(MARKS)) + made[at + is_left_out :]
    if source.random() < 0.3:
        made += source.choice(("; canary", "\ncanary", " canary", "'; canary", '"; canary', ")\ncanary", "\nE\ncanary"))
    return f"C=canary Z=ary\n{made}"
