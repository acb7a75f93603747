package deal

import "errors"

// A Scheduled is a Dealer of a strategy that has a part in the schedule of a run.
type Scheduled interface {
	Dealer
	// Part returns what the dealer would deal by next, as its strategy encodes it.
	Part() []byte
	// Follow has the next epochs dealt by a part. It changes nothing where the dealer does
	// so already, and returns an error if it can't.
	Follow(part []byte) error
}

// PartOf returns a dealer's part in a schedule, nil if it has none.
func PartOf(d Dealer) []byte {
	if s, has := d.(Scheduled); has {
		return s.Part()
	}
	return nil
}

// Follow has a dealer follow a part of a schedule.
func Follow(d Dealer, part []byte) error {
	if s, has := d.(Scheduled); has {
		return s.Follow(part)
	}
	if len(part) > 0 {
		return errors.New("the schedule says more of this strategy than there is to say")
	}
	return nil
}
