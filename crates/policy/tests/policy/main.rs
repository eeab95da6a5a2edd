//! The policy as its users see it: files, requests, conditions, slots, reloads and the log.

#[cfg(test)]
mod audit;
#[cfg(test)]
mod conditions;
#[cfg(test)]
mod decisions;
#[cfg(test)]
mod encodings;
#[cfg(test)]
mod examples;
#[cfg(test)]
mod files;
#[cfg(test)]
mod reload;
#[cfg(test)]
mod signed;
#[cfg(test)]
mod slots;
#[cfg(test)]
mod support;
