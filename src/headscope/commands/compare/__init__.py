"""`headscope compare`: compare head tables before and after fine-tuning."""
