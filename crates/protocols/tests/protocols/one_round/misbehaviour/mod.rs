//! One file for each misbehaviour: its tests commit it and check that the culprit is named and the result delivered.

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
