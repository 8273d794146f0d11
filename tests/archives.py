"""Archives of torch.export with another model."""

import io
import json
import zipfile


def changed(archive, change):
    """The archive, a file, after `change(model)` of the JSON text in it that says what the model is."""
    made = io.BytesIO()
    with zipfile.ZipFile(archive) as old, zipfile.ZipFile(made, "w") as new:
        for name in old.namelist():
            content = old.read(name)
            if name.endswith("models/model.json"):
                model = json.loads(content)
                change(model)
                content = json.dumps(model).encode()
            new.writestr(name, content)
    made.seek(0)
    return made
