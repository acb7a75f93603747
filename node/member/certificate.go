package member

import (
	"context"
	"errors"
	"time"
)

// How long to wait before a renewal is tried again: one that a new CA asks for holds up the end
// of the former one.
const (
	renewAgain   = time.Minute
	succeedAgain = time.Second
)

// clockLook is how often the clock is looked at: a timer knows nothing of a clock that is set, nor
// of the time that a machine sleeps.
const clockLook = time.Minute

// keepCertificate renews the certificate at half its lifetime, and when the mesh has a new CA.
func (a *admission) keepCertificate(ctx context.Context) error {
	for {
		if left := a.id.RenewIn(); left > 0 && !a.id.Outdated() {
			select {
			case <-time.After(min(left, clockLook)):
				continue
			case <-a.succession.renew:
				continue
			case <-ctx.Done():
				return nil
			}
		}
		err := a.renewOnce(ctx)
		again := renewAgain
		switch {
		case a.id.Outdated(): // the leader may not have read the plan yet
			again = succeedAgain
		case err == nil && a.id.RenewIn() > 0:
			continue
		case err == nil:
			err = errors.New("it is due again at once: the clock of this node or of the leader is wrong")
		}
		if err != nil {
			a.log.Warn("the certificate is due for renewal; trying again", "expires", a.id.NotAfter(), "in", again, "err", err)
		}
		select {
		case <-time.After(again):
		case <-a.succession.renew:
		case <-ctx.Done():
			return nil
		}
	}
}

func (a *admission) renewOnce(ctx context.Context) error {
	r, err := a.id.Renew()
	if err != nil {
		return err
	}
	chain, err := a.sign.Do(ctx, r.CSR())
	if err != nil && ctx.Err() == nil && a.id.HasCAKey() && a.id.Now().After(a.id.NotAfter()) {
		// A voter signs for itself: a mesh that was off for longer than its certificates
		// live could not elect a leader before they are renewed.
		chain, err = a.id.Sign(r.CSR(), a.id.ID(), a.id.Now())
	}
	if err != nil {
		return err
	}
	if a.id.Outdated() && !a.id.IsNewest(chain) { // it would be renewed again and again
		return errors.New("the leader does not sign by the new CA yet")
	}
	if err := r.Adopt(chain); err != nil {
		return err
	}
	a.mesh.Redial()
	a.log.Info("renewed the certificate", "expires", a.id.NotAfter())
	return nil
}
