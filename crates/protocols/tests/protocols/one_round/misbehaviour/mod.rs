//! A file for each way to misbehave: each commits it and sees the culprit named and the result delivered.

mod all_byzantine;
mod cancelling_shares;
mod early_share;
mod garbage;
mod malformed_share;
mod replay;
mod silent_node;
mod someone_elses_share;
mod two_different_shares;
mod wrong_share;
