"""A model by its name on the hub, which is asked for it once: its own client asks for each file, and each six times."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from statetrack.data.hub import client, said, understood
from statetrack.errors import BadInput
from statetrack.secrets import scrub_error

SECONDS = 10.0  # that the hub has for its answer


def located(name: str) -> str:
    """What transformers should load: the name, or the folder of an earlier download where the hub is not reached."""
    from huggingface_hub import errors
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, RepositoryNotFoundError

    library = client(f"loading hf:{name}")
    unsent: Any = HfHubHTTPError.__mro__[1]  # of the library that the hub's client sends with, whichever it is
    try:
        with understood(f"model hf:{name}", errors):
            library.HfApi().model_info(name, timeout=SECONDS)
    except HFValidationError as error:
        scrub_error(error)
        raise _refused(name, "that is no name of the hub's either, such as owner/model") from error
    except RepositoryNotFoundError as error:
        scrub_error(error)
        raise _refused(name, "the hub has no model of that name, or does not show it to you") from error
    except HfHubHTTPError:
        return name  # it is there, and busy: its client knows how to wait
    except (OSError, unsent) as error:
        why = said(error)
        kept = library.try_to_load_from_cache(name, "config.json")
        if isinstance(kept, str):
            return str(Path(kept).parent)
        raise _refused(name, f"the hub is not reached ({why})") from error
    return name


def _refused(name: str, why: str) -> BadInput:
    return BadInput(f"model hf:{name} cannot be loaded: there is no such file or folder, and {why}")
