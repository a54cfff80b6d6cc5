"""Tables in Markdown."""


def row(*cells):
    return "| " + " | ".join(str(cell).replace("|", "/").replace("\n", " ") for cell in cells) + " |"


def table(columns, rows):
    return [row(*columns), "|" + "---|" * len(columns), *[row(*cells) for cells in rows]]


def number(value, form=".3f"):
    """Returns the number in a form, or an empty text for None."""
    return "" if value is None else f"{value:{form}}"


def share(value):
    return "" if value is None else f"{100 * value:.1f} %"


def mebibytes(count):
    return "" if count is None else f"{count / 2**20:.1f} MiB"


def count(number, noun):
    """Returns a number and its noun, such as "1 job" or "2 jobs"."""
    return f"{number} {noun}{'' if number == 1 else 's'}"
