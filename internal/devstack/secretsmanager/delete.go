package secretsmanager

import (
	"net/http"
	"time"

	"dakghar/internal/devstack/awsjson"
)

type deleteSecretInput struct {
	SecretID                   string `json:"SecretId"`
	RecoveryWindowInDays       *int
	ForceDeleteWithoutRecovery bool
}

type deleteSecretOutput struct {
	ARN          string
	Name         string
	DeletionDate awsjson.Time
}

func (s *Server) deleteSecret(_ *http.Request, in deleteSecretInput) (deleteSecretOutput, error) {
	days := recoveryMaxDays
	if in.RecoveryWindowInDays != nil {
		days = *in.RecoveryWindowInDays
	}
	if days < recoveryMinDays || days > recoveryMaxDays {
		return deleteSecretOutput{}, invalidParameter("RecoveryWindowInDays must be %d to %d.", recoveryMinDays, recoveryMaxDays)
	}
	if in.ForceDeleteWithoutRecovery && in.RecoveryWindowInDays != nil {
		return deleteSecretOutput{}, invalidParameter("You can't use ForceDeleteWithoutRecovery in conjunction with RecoveryWindowInDays.")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.cfg.Now()
	x, err := s.find(in.SecretID)
	if in.ForceDeleteWithoutRecovery {
		return s.forceDelete(x, in.SecretID, now), nil
	}
	if err != nil {
		return deleteSecretOutput{}, err
	}
	if !x.deletion.IsZero() {
		return deleteSecretOutput{}, invalidRequest("You tried to perform the operation on a secret that's currently marked deleted.")
	}
	x.deletion = now.Add(time.Duration(days) * 24 * time.Hour)
	return deleteSecretOutput{ARN: x.arn, Name: x.name, DeletionDate: awsjson.Time(x.deletion)}, nil
}

// forceDelete succeeds for a secret that does not exist, as the service documents.
func (s *Server) forceDelete(x *secret, id string, now time.Time) deleteSecretOutput {
	if x == nil {
		x = &secret{name: id, arn: s.arn(id, s.cfg.NewID())}
	}
	delete(s.secrets, x.name)
	return deleteSecretOutput{ARN: x.arn, Name: x.name, DeletionDate: awsjson.Time(now)}
}
