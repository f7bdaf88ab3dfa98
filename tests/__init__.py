"""The tests mirror src/statetrack; a module that several of them share is imported as `tests.FOLDER.NAME`."""
