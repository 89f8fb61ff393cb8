"""What is stored: one provider a room, each of which implements the contract of oap.core.storage
and imports no other one. What stands beside them is shared by them, and knows no database."""
