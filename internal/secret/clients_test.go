package secret_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	awssecrets "github.com/aws/aws-sdk-go-v2/service/secretsmanager"

	"dakghar/internal/devstack/secretsmanager"
	"dakghar/internal/secret"
)

// clients are what the store's suite runs against: the fake, the embedded
// service through the SDK, and moto, emptied, where MOTO_URL names one.
func clients(t *testing.T) map[string]secret.Client {
	t.Helper()
	server := httptest.NewServer(secretsmanager.New(secretsmanager.Config{}))
	t.Cleanup(server.Close)
	all := map[string]secret.Client{"fake": newFake(), "embedded": sdk(server.URL)}
	if url := os.Getenv("MOTO_URL"); url != "" {
		emptied, err := http.Post(url+"/moto-api/reset", "", nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := emptied.Body.Close(); err != nil {
			t.Fatal(err)
		}
		all["moto"] = sdk(url)
	}
	return all
}

func sdk(url string) *awssecrets.Client {
	return awssecrets.New(awssecrets.Options{
		BaseEndpoint: aws.String(url), Region: "us-east-1",
		Credentials: credentials.NewStaticCredentialsProvider("local", "local", ""),
	})
}

// asTold returns the versions as a known imperfect service tells them. moto
// takes all other labels from the version that loses AWSCURRENT; Secrets
// Manager moves only the labels that a call names.
func asTold(where string, versions []secret.Version) []secret.Version {
	if where != "moto" {
		return versions
	}
	var told []secret.Version
	for _, v := range versions {
		v.Kept = v.Kept && v.Current
		if v.Kept || v.Current || v.Previous {
			told = append(told, v)
		}
	}
	return told
}
