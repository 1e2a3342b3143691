"""Write every generated document; with --record, first run the commands whose JSON is shown."""

from __future__ import annotations

import sys

from . import ROOT, recording, wanted


def main() -> None:
    if "--record" in sys.argv[1:]:
        recording.FILE.write_text(recording.encoded(recording.record()), encoding="utf-8")
    for path, text in wanted():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            print(f"wrote {path.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
