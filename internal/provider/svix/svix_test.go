package svix_test

import (
	"testing"

	"dakghar/internal/provider/providertest"
	"dakghar/internal/provider/svix"
	"dakghar/internal/signature"
)

func suite() providertest.Suite {
	return providertest.Suite{
		Current: "whsec_Y3VycmVudCBjdXJyZW50IGN1cnJlbnQ=", Previous: "whsec_cHJldmlvdXMgcHJldmlvdXMgcHJldmk=", Other: "whsec_b3RoZXIgb3RoZXIgb3RoZXIgb3RoZXI=",
		Type: "object.updated",
		NotSecrets: map[string]error{
			"whsec_": signature.ErrSecretEmpty, "whpk_": signature.ErrSecretEmpty, "whsec_!!!!": signature.ErrSecretUndecodable,
			"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw": signature.ErrSecretPublished, "whsec_dG9vIHNob3J0": signature.ErrSecretTooShort,
		},
	}
}

func TestSuite(t *testing.T) {
	t.Parallel()
	providertest.Run(t, svix.Adapter(), suite())
}
