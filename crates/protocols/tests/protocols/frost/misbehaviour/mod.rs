//! One file for each way to misbehave.

mod equivocation;
mod false_share;
mod false_signature;
mod floods;
mod garbage;
mod lying_coordinator;
mod overlong;
mod silent;
