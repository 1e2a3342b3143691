def token():
    return "checked"
