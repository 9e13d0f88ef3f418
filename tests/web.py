"""A small server that stands for the web: it serves a folder, and can stop half-way."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

TREE = """# newdoc id = letter
# sent_id = {name}-1
# text = She doesn't see.
1\tShe\tshe\tPRON\t_\t_\t4\tnsubj\t_\t_
2-3\tdoesn't\t_\t_\t_\t_\t_\t_\t_\t_
2\tdoes\tdo\tAUX\t_\t_\t4\taux\t_\t_
3\tn't\tnot\tPART\t_\t_\t4\tadvmod\t_\t_
4\tsee\tsee\tVERB\t_\t_\t0\troot\t_\tSpaceAfter=No
5\t.\t.\tPUNCT\t_\t_\t4\tpunct\t_\t_

"""
ABOUT = "# Summary\n\n=== Machine-readable metadata ===\nLicense: CC BY-SA 4.0\nIncludes text: {text}\n"


class Handler(SimpleHTTPRequestHandler):
    """Serves the folder of the server, notes what is asked for, and sends no more than so many bytes of a file."""

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        super().do_GET()

    def copyfile(self, source: Any, target: Any) -> None:
        if self.server.sent is None:
            shutil.copyfileobj(source, target)
        else:
            target.write(source.read(self.server.sent))

    def log_message(self, *arguments: object) -> None:
        pass


@contextmanager
def serving(folder: Path) -> Iterator[Any]:
    """A server of the files in a folder.

    ``asked`` is what it was asked for, ``sent`` limits how many bytes of a file it sends, and ``stop`` ends it.
    """
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=folder)) as server:
        server.asked, server.sent, server.folder = [], None, folder
        server.address = f"http://127.0.0.1:{server.server_port}"
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()

        def stop() -> None:
            server.shutdown()
            server.server_close()
            thread.join()

        server.stop = stop
        try:
            yield server
        finally:
            stop()


def publish(folder: Path, release: str = "2.16") -> Callable[..., Path]:
    """Return a function that writes a treebank as its repository has it, of a few splits, and returns its folder."""

    def write(repository: str, code: str, *splits: str, sentences: int = 3, text: str = "yes") -> Path:
        place = folder / repository / f"r{release}"
        place.mkdir(parents=True, exist_ok=True)
        (place / "README.md").write_text(ABOUT.format(text=text))
        for split in splits:
            names = (f"{split}-{number}" for number in range(sentences))
            content = "".join(TREE.format(name=name) for name in names)
            (place / f"{code}-ud-{split}.conllu").write_text(content)
        return place

    return write
