//! What has changed since a copy was transferred (RFC 1995). Differences are applied to a copy of the copy, and whatever does not fit it makes them
//! worth nothing: then the whole zone is asked for.

use super::{
    TransferError,
    answers::{AnyRecord, Arriving, question_since, receive, start},
    axfr::Received,
    tsig::Key,
};
use crate::zone::{Zone, is_after, serial_of};

/// How many records differences may have, beside twice as many as the copy: the whole zone takes less then.
const MORE: usize = 1_000;

/// What a primary has beside a copy.
pub(super) enum Changes {
    /// Nothing.
    None,
    /// A zone that has come whole.
    Whole(Zone),
    /// The copy with the differences that have come.
    Differences(Zone),
}

/// Asks for what has changed since this copy.
pub(super) fn changes(address: &str, key: &Key, copy: &Zone) -> Result<Changes, TransferError> {
    let mut arrived = Arrived { copy, whole: Received::new(copy.apex()), form: Form::Unknown };
    receive(address, key, question_since(copy)?, &mut arrived)?;
    match arrived.form {
        Form::Unknown | Form::Same => Ok(Changes::None),
        Form::Whole => arrived.whole.finish().map(Changes::Whole),
        Form::Differences(differences) => Ok(Changes::Differences(differences.zone)),
    }
}

/// Which of the three forms the answer has (RFC 1995, section 4). The second record tells the last two.
enum Form {
    Unknown,
    /// A SOA record that the copy has.
    Same,
    /// As an answer to AXFR.
    Whole,
    Differences(Differences),
}

/// An answer on its way.
struct Arrived<'a> {
    copy: &'a Zone,
    whole: Received<'a>,
    form: Form,
}

impl Arrived<'_> {
    /// Takes one of the first two records.
    fn begin(&mut self, record: &AnyRecord<'_>) -> Result<(), TransferError> {
        let serial = start(record, self.copy.apex())?.and_then(|data| serial_of(&data));
        let own = self.copy.serial();
        let Some(last) = self.whole.first().map(<[u8]>::to_vec) else {
            if serial.is_some() && serial == own {
                self.form = Form::Same;
                return Ok(());
            }
            if serial.zip(own).is_some_and(|(serial, own)| !is_after(serial, own)) {
                return Err(TransferError::Message("the serial of the answer is older than that of the copy"));
            }
            return self.whole.add(record);
        };
        if serial.is_none() || serial != own {
            self.form = Form::Whole;
            return self.whole.add(record);
        }
        let left = self.copy.records().saturating_mul(2).saturating_add(MORE);
        let mut differences = Differences { zone: self.copy.clone(), last, takes_away: false, has_ended: false, left };
        differences.add(record)?;
        self.form = Form::Differences(differences);
        Ok(())
    }
}

impl Arriving for Arrived<'_> {
    fn add(&mut self, record: &AnyRecord<'_>) -> Result<(), TransferError> {
        match &mut self.form {
            Form::Unknown => self.begin(record),
            Form::Same => Err(TransferError::Message("there are records after a SOA record that has not changed")),
            Form::Whole => self.whole.add(record),
            Form::Differences(differences) => differences.add(record),
        }
    }

    fn has_ended(&self) -> bool {
        match &self.form {
            Form::Unknown => false,
            Form::Same => true,
            Form::Whole => self.whole.has_ended(),
            Form::Differences(differences) => differences.has_ended,
        }
    }
}

/// Differences on their way: one after the other from the SOA record of the copy to that of the answer, each with the SOA record before it, what
/// is taken away, the SOA record after it, and what is added.
struct Differences {
    /// The copy with what has come so far.
    zone: Zone,
    /// The data of the SOA record that it has at the end.
    last: Vec<u8>,
    /// Whether records are taken away now, and not added.
    takes_away: bool,
    has_ended: bool,
    /// How many more records may come.
    left: usize,
}

impl Differences {
    fn add(&mut self, record: &AnyRecord<'_>) -> Result<(), TransferError> {
        if self.has_ended {
            return Err(TransferError::Message("there are records after the last difference"));
        }
        let many = TransferError::Message("there are more differences than the zone has records");
        self.left = self.left.checked_sub(1).ok_or(many)?;
        match (start(record, self.zone.apex())?, self.takes_away) {
            (None, true) => Ok(self.zone.remove(record)?),
            (None, false) => Ok(self.zone.insert(record)?),
            (Some(data), true) => self.turn(record, &data),
            (Some(data), false) => self.connect(&data),
        }
    }

    /// What follows is added, and the zone has this SOA record after it.
    fn turn(&mut self, record: &AnyRecord<'_>, data: &[u8]) -> Result<(), TransferError> {
        let serials = serial_of(data).zip(self.zone.serial());
        if !serials.is_some_and(|(next, own)| is_after(next, own)) {
            return Err(TransferError::Message("the serials of the differences do not count on"));
        }
        self.takes_away = false;
        Ok(self.zone.restart(record)?)
    }

    /// The next difference begins where the zone is now, or the answer ends.
    fn connect(&mut self, data: &[u8]) -> Result<(), TransferError> {
        let own = self.zone.start().and_then(|start| start.data.first());
        if own.is_none_or(|own| own != data) {
            return Err(TransferError::Message("the differences do not connect"));
        }
        if data == self.last {
            self.has_ended = true
        } else {
            self.takes_away = true
        }
        Ok(())
    }
}
