//! The canonical codec, for parties that are nodes.

use theta_names::codec::{DecodeError, Reader, Sink, Writer};
use theta_rounds::{Malformed, PartyId};

/// Reads a party, two bytes.
///
/// # Errors
/// [`DecodeError`] if the bytes end or the number is 0.
pub fn read_party(reader: &mut Reader<'_>) -> Result<PartyId, DecodeError> {
    reader.node_id().map(PartyId::of_node)
}

/// Appends parties, each with so many bytes.
pub fn write_entries<'a, S: Sink, const N: usize>(
    writer: Writer<S>,
    entries: impl IntoIterator<Item = (&'a PartyId, &'a [u8; N])>,
) -> Writer<S> {
    entries.into_iter().fold(writer, |writer, (party, bytes)| writer.node_id(party.node()).raw(bytes))
}

/// Reads all that is left, as parties that rise, each with so many bytes.
///
/// # Errors
/// [`Malformed`]; with `falling` as the reason if the parties do not rise.
pub fn read_entries<const N: usize>(
    reader: Reader<'_>,
    falling: &'static str,
) -> Result<Vec<(PartyId, [u8; N])>, Malformed> {
    let entries = reader.all(|reader| Ok::<_, DecodeError>((read_party(reader)?, reader.array::<N>()?)))?;
    if entries.is_sorted_by(|(a, _), (b, _)| a < b) { Ok(entries) } else { Err(Malformed(falling)) }
}
