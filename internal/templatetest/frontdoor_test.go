package templatetest

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var providers = []string{"github", "razorpay", "shopify", "slack", "standard-webhooks", "stripe", "svix"}

func routeKeys() []string {
	var keys []string
	for _, provider := range providers {
		keys = append(keys, "POST /in/"+provider+"/{endpoint_id}")
	}
	return keys
}

// Proves V1: only POST, one static route a provider, and nothing that takes the rest.
func TestThereIsOneRouteAProviderAndNoDefault(t *testing.T) {
	tmpl := load(t)
	var got []string
	for _, id := range tmpl.ofType("AWS::ApiGatewayV2::Route") {
		p := tmpl.Resources[id].Properties
		got = append(got, text(p["RouteKey"]))
		if target := text(p["Target"]); target != "integrations/${FrontDoorToIngress}" {
			t.Errorf("%s leads to %s", id, target)
		}
	}
	slices.Sort(got)
	if diff := cmp.Diff(routeKeys(), got); diff != "" {
		t.Errorf("routes (-want +got):\n%s", diff)
	}
}

// Proves V1: a flood at one provider's route leaves the others their own.
func TestEveryRouteHasAThrottleOfItsOwn(t *testing.T) {
	settings := at(t, load(t).Resources["FrontDoorStage"].Properties, "RouteSettings").(object)
	if diff := cmp.Diff(routeKeys(), slices.Sorted(maps.Keys(settings))); diff != "" {
		t.Errorf("throttled routes (-want +got):\n%s", diff)
	}
	want := object{
		"ThrottlingRateLimit":    ref("RouteRatePerSecond"),
		"ThrottlingBurstLimit":   ref("RouteBurst"),
		"DetailedMetricsEnabled": true,
	}
	for key, got := range settings {
		if diff := cmp.Diff(any(want), got); diff != "" {
			t.Errorf("settings of %s (-want +got):\n%s", key, diff)
		}
	}
}

// API Gateway refuses settings of a route that does not exist yet.
func TestTheStageWaitsForItsRoutes(t *testing.T) {
	tmpl := load(t)
	got := slices.Sorted(slices.Values(tmpl.Resources["FrontDoorStage"].DependsOn))
	if diff := cmp.Diff(tmpl.ofType("AWS::ApiGatewayV2::Route"), got); diff != "" {
		t.Errorf("DependsOn of the stage (-want +got):\n%s", diff)
	}
}

var liveIngress = object{"Fn::Sub": "${IngressFunction.Arn}:live"}

func TestTheFrontDoorSpeaksPayloadTwoToIngress(t *testing.T) {
	tmpl := load(t)
	want := object{
		"ApiId":                ref("FrontDoor"),
		"IntegrationType":      "AWS_PROXY",
		"IntegrationUri":       liveIngress,
		"PayloadFormatVersion": "2.0",
		"TimeoutInMillis":      3000.0,
	}
	if diff := cmp.Diff(want, tmpl.Resources["FrontDoorToIngress"].Properties); diff != "" {
		t.Errorf("integration (-want +got):\n%s", diff)
	}
	permission := tmpl.Resources["FrontDoorMayInvokeIngress"].Properties
	if diff := cmp.Diff(any(liveIngress), permission["FunctionName"]); diff != "" {
		t.Errorf("whom the door may invoke (-want +got):\n%s", diff)
	}
	if got := text(permission["SourceArn"]); !strings.HasSuffix(got, ":${FrontDoor}/*/POST/in/*") {
		t.Errorf("ingress may be invoked from %s", got)
	}
}

// Proves M4: an access log line has no query string, no header that could carry a token, and is one line of JSON.
func TestAccessLogsCarryNothingSecret(t *testing.T) {
	format := text(at(t, load(t).Resources["FrontDoorStage"].Properties, "AccessLogSettings", "Format"))
	for _, word := range []string{"querystring", "header", "authorizer", "body", "\n"} {
		if strings.Contains(strings.ToLower(format), word) {
			t.Errorf("the access log format has %q: %s", word, format)
		}
	}
	for _, field := range []string{"$context.requestId", "$context.routeKey", "$context.status", "$context.error.responseType"} {
		if !strings.Contains(format, field) {
			t.Errorf("the access log format lacks %s", field)
		}
	}
}
