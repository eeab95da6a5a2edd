//! Operating a group: the lives of keys, permissions, sealing, audit logs.

mod audit;
mod backup;
mod clients;
mod doctor;
mod evidence;
mod founding;
mod ledger;
mod lifecycle;
mod members;
mod policy;
mod rules;
mod sealing;
