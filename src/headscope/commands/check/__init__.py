"""`headscope check`: do the heads of another model still do what they did?"""
