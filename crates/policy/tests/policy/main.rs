//! The policy as its users see it: files, requests, approvals, slots, rates, reloads and the log.

#[cfg(test)]
mod approvals;
#[cfg(test)]
mod audit;
#[cfg(test)]
mod decisions;
#[cfg(test)]
mod encodings;
#[cfg(test)]
mod examples;
#[cfg(test)]
mod files;
#[cfg(test)]
mod rates;
#[cfg(test)]
mod reload;
#[cfg(test)]
mod signed;
#[cfg(test)]
mod slots;
#[cfg(test)]
mod support;
