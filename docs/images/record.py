"""Runs a command on a terminal of its own and draws what it printed, and when, as an SVG picture that plays it once."""

import argparse
import fcntl
import html
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import time

CHARACTER, LINE, MARGIN, TOP = 7.83, 18, 14, 38
CONTROL = re.compile(r"\x1b\[[0-9;?]*([A-Za-z])")


class Row:
    """A line of the screen: the texts that stood there one after the other, each from a moment on."""

    def __init__(self) -> None:
        self.versions = []

    def set(self, moment: float, text: str) -> None:
        self.versions.append((moment, text.rstrip()))


def run(command, columns):
    """What comes, as (seconds, text), and the exit code."""
    terminal, inside = pty.openpty()
    fcntl.ioctl(inside, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    process = subprocess.Popen(command, stdin=inside, stdout=inside, stderr=inside, close_fds=True)
    os.close(inside)
    started = time.monotonic()
    chunks = []
    while True:
        try:
            chunk = os.read(terminal, 65536)
        except OSError:  # Linux reports the end of a terminal's other side so.
            chunk = b""
        if not chunk:
            break
        chunks.append((time.monotonic() - started, chunk.decode(errors="replace")))
    return chunks, process.wait()


def draw(chunks):
    """The rows of the screen. Understands a return to the line's beginning and the clearing of its rest, and leaves other controls out."""
    rows = [Row()]
    text = ""
    for moment, chunk in chunks:
        at = 0
        fresh = False
        while at < len(chunk):
            control = CONTROL.match(chunk, at)
            if control:
                at = control.end()
                continue
            letter = chunk[at]
            at += 1
            if letter == "\n":
                rows[-1].set(moment, text)
                rows.append(Row())
                text, fresh = "", False
            elif letter == "\r":
                # What is drawn over begins anew; a line's end comes as both.
                if chunk[at : at + 1] != "\n" and text:
                    rows[-1].set(moment, text)
                    text = ""
                fresh = True
            else:
                text += letter
                fresh = True
        if fresh and text:
            rows[-1].set(moment, text)
    while rows and not any(text for _, text in rows[-1].versions):
        rows.pop()
    return rows


def picture(prompt, rows, columns, seconds):
    last = max((version[0] for row in rows for version in row.versions), default=1.0)
    speed = max(last / seconds, 1.0)
    width, height = MARGIN * 2 + CHARACTER * columns, TOP + LINE * (len(rows) + 1) + MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" width="{width:.0f}" height="{height}" role="img">',
        f"<title>{html.escape(prompt)}</title>",
        "<style>text{font:13px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;fill:#d6dde4;white-space:pre}"
        ".prompt{fill:#7ee787}.note{fill:#8b949e;font-size:11px;text-anchor:end}</style>",
        f'<rect width="{width:.0f}" height="{height}" rx="8" fill="#0d1117"/>',
        *(f'<circle cx="{18 + 18 * i}" cy="17" r="5.5" fill="{colour}"/>' for i, colour in enumerate(("#ff5f57", "#febc2e", "#28c840"))),
    ]
    if speed > 1:
        parts.append(f'<text class="note" x="{width - MARGIN:.0f}" y="21">{last:.0f} s, played {speed:.0f} times as fast</text>')
    parts.append(f'<text class="prompt" x="{MARGIN}" y="{TOP + 12}" xml:space="preserve">$ {html.escape(prompt)}</text>')
    for number, row in enumerate(rows, 1):
        # Fewer than the eye could follow anyway.
        kept = []
        for moment, text in row.versions:
            if kept and moment / speed - kept[-1][0] < 0.25:
                kept[-1] = (kept[-1][0], text)
            else:
                kept.append((moment / speed, text))
        for at, (begin, text) in enumerate(kept):
            if not text:
                continue
            final = at + 1 == len(kept)
            if final:
                moves, hidden = f'<set attributeName="visibility" to="hidden" begin="0s" dur="{max(begin, 0.01):.2f}s"/>', ""
            else:
                moves = f'<set attributeName="visibility" to="visible" begin="{begin:.2f}s" dur="{kept[at + 1][0] - begin:.2f}s"/>'
                hidden = ' visibility="hidden"'
            parts.append(
                f'<text x="{MARGIN}" y="{TOP + 12 + LINE * number}" xml:space="preserve"{hidden}>{html.escape(text)}{moves}</text>'
            )
    return "\n".join(parts + ["</svg>", ""])


def main() -> int:
    example = (
        "Example: python3 docs/images/record.py --prompt 'ringlet launch -n 4 -- train_text' docs/images/train.svg -- ringlet launch ..."
    )
    parser = argparse.ArgumentParser(description=__doc__, epilog=example, usage="record.py [options] output -- command...")
    parser.add_argument("--columns", type=int, default=100, help="the terminal's width (%(default)s)")
    parser.add_argument("--seconds", type=float, default=12, help="the picture plays no longer than this (%(default)s)")
    parser.add_argument("--rows", type=int, default=40, help="lines that the picture shows at most (%(default)s)")
    parser.add_argument("--prompt", help="what the picture shows as the command; the command itself if not said")
    parser.add_argument("output")
    if "--" not in sys.argv[1:-1] and not {"-h", "--help"} & set(sys.argv):
        parser.error("the command stands behind --")
    # argparse would take every -- of the command for its own.
    end = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    options, command = parser.parse_args(sys.argv[1:end]), sys.argv[end + 1 :]
    chunks, code = run(command, options.columns)
    with open(options.output, "w", encoding="utf-8") as file:
        file.write(picture(options.prompt or " ".join(command), draw(chunks)[: options.rows], options.columns, options.seconds))
    return code


if __name__ == "__main__":
    sys.exit(main())
