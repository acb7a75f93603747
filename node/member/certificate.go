package member

import (
	"context"
	"time"
)

// keepCertificate renews the certificate at half its lifetime, and tries again each
// minute if that fails.
func (a *admission) keepCertificate(ctx context.Context) error {
	for {
		wait := max(time.Until(a.id.RenewAt()), 0)
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil
		}
		if err := a.renewOnce(ctx); err != nil {
			a.log.Warn("the certificate is due for renewal; trying again in a minute", "expires", a.id.NotAfter(), "err", err)
			select {
			case <-time.After(time.Minute):
			case <-ctx.Done():
				return nil
			}
		}
	}
}

func (a *admission) renewOnce(ctx context.Context) error {
	r, err := a.id.Renew()
	if err != nil {
		return err
	}
	chain, err := a.sign.Do(ctx, r.CSR())
	if err != nil && ctx.Err() == nil && a.id.HasCAKey() && time.Now().After(a.id.NotAfter()) {
		// A voter signs for itself: a mesh that was off for longer than its certificates
		// live could not elect a leader before they are renewed.
		chain, err = a.id.Sign(r.CSR(), a.id.ID(), time.Now())
	}
	if err != nil {
		return err
	}
	if err := r.Adopt(chain); err != nil {
		return err
	}
	a.mesh.Redial()
	a.log.Info("renewed the certificate", "expires", a.id.NotAfter())
	return nil
}
