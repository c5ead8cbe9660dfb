"""Runs the code of a notebook, as a kernel does, with other values for what its cell with the tag "parameters" sets:

python run_notebook.py [--kernel] NOTEBOOK NAME=VALUE...

With --kernel it runs in a kernel of Jupyter's, by nbclient; otherwise in this process. Prints what the cells print."""

import json
import sys


def cells_of(path, values):
    with open(path, encoding="utf-8") as file:
        notebook = json.load(file)
    given = 0
    for cell in notebook["cells"]:
        if cell["cell_type"] != "code":
            continue
        yield "".join(cell["source"])
        if "parameters" in cell["metadata"].get("tags", ()):
            given += 1
            yield "\n".join(f"{name} = {value!r}" for name, value in values.items())
    assert given == 1, "one cell has the parameters"


def in_kernel(path, values):
    import nbclient
    import nbformat

    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in cells_of(path, values)])
    nbclient.NotebookClient(notebook, timeout=200, kernel_name="python3").execute()
    for cell in notebook.cells:
        for output in cell.outputs:
            print(output.get("text") or output.get("data", {}).get("text/plain", ""), end="")


def in_this_process(path, values):
    names = {"__name__": "__main__"}
    for number, source in enumerate(cells_of(path, values)):
        exec(compile(source, f"cell {number}", "exec"), names)


def main():
    words = sys.argv[1:]
    run = in_this_process
    if words[0] == "--kernel":
        run = in_kernel
        words.pop(0)
    path, *settings = words
    run(path, {name: int(value) if value.isdigit() else value for name, value in (word.split("=", 1) for word in settings)})


if __name__ == "__main__":
    main()
