//! Keeping keys: their lives, who may use them, what seals them, what is on record.

mod audit;
mod backup;
mod doctor;
mod evidence;
mod lifecycle;
mod policy;
mod rules;
mod sealing;
