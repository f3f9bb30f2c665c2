package paddle_test

import (
	"testing"

	"dakghar/internal/provider/paddle"
	"dakghar/internal/provider/providertest"
	"dakghar/internal/signature"
)

func suite() providertest.Suite {
	return providertest.Suite{
		Current: "pdl_ntfset_current_secret_of_the_suite", Previous: "pdl_ntfset_previous_secret_of_the_suite", Other: "pdl_ntfset_other_secret_of_the_suite",
		Type: "transaction.completed",
		NotSecrets: map[string]error{
			"pdl_ntfset_": signature.ErrSecretTooShort,
			"pdl_ntfset_01hsdn8d43dt7mezr1ef2jtbaw_hKkRiCGyyRhbFwIUuqiTBgI7gnWoV0Gr": signature.ErrSecretPublished,
			"pdl_live_apikey_01gtgztp8f4kek3yd4g1wrksa3_a_key_of_the_suite":          signature.ErrSecretForeign,
			"pdl_sdbx_apikey_01gtgztp8f4kek3yd4g1wrksa3_a_key_of_the_suite":          signature.ErrSecretForeign,
			"test_a_client_side_token_of_the_suite":                                  signature.ErrSecretForeign,
		},
	}
}

func TestSuite(t *testing.T) {
	t.Parallel()
	providertest.Run(t, paddle.Adapter(), suite())
}
