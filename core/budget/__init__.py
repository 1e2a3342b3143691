"""Budgets for a day, and the ledger of spending."""
