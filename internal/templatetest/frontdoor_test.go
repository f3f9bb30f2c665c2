package templatetest

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var providers = []string{"github", "paddle", "razorpay", "shopify", "slack", "standard-webhooks", "stripe", "svix"}

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

// A name of your own is made only where it is wanted, speaks TLS 1.2 at least, and asks for certificates only where a
// truststore is given.
func TestTheDoorHasANameOfYourOwnByParameter(t *testing.T) {
	tmpl := load(t)
	noValue := ref("AWS::NoValue")
	want := map[string]resource{
		"FrontDoorDomain": {
			Type: "AWS::ApiGatewayV2::DomainName", Condition: "HasDomain",
			Properties: object{
				"DomainName": ref("DomainName"),
				"DomainNameConfigurations": []any{object{
					"CertificateArn": ref("DomainCertificateArn"), "EndpointType": "REGIONAL", "SecurityPolicy": "TLS_1_2",
				}},
				"MutualTlsAuthentication": object{"Fn::If": []any{"HasMutualTLS", object{
					"TruststoreUri":     ref("TruststoreUri"),
					"TruststoreVersion": object{"Fn::If": []any{"HasTruststoreVersion", ref("TruststoreVersion"), noValue}},
				}, noValue}},
			},
		},
		"FrontDoorDomainMapping": {
			Type: "AWS::ApiGatewayV2::ApiMapping", Condition: "HasDomain",
			Properties: object{"ApiId": ref("FrontDoor"), "DomainName": ref("FrontDoorDomain"), "Stage": ref("FrontDoorStage")},
		},
		"FrontDoorDomainRecord": {
			Type: "AWS::Route53::RecordSet", Condition: "HasDomainRecord",
			Properties: object{
				"HostedZoneId": ref("DomainHostedZoneId"), "Name": ref("DomainName"), "Type": "A",
				"AliasTarget": object{
					"DNSName":              attribute("FrontDoorDomain.RegionalDomainName"),
					"HostedZoneId":         attribute("FrontDoorDomain.RegionalHostedZoneId"),
					"EvaluateTargetHealth": false,
				},
			},
		},
	}
	got := map[string]resource{}
	for id := range want {
		r := tmpl.Resources[id]
		r.Metadata = nil
		got[id] = r
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the door's own name (-want +got):\n%s", diff)
	}
}

// CloudFormation refuses, before it makes anything, a door without a name and mutual TLS with a way around it.
func TestRulesRefuseADoorThatCannotBeMeant(t *testing.T) {
	given := func(parameter string) object {
		return object{"Fn::Not": []any{object{"Fn::Equals": []any{ref(parameter), ""}}}}
	}
	closed := object{"Fn::Equals": []any{ref("DisableExecuteApiEndpoint"), "true"}}
	type rule struct {
		When any
		Then []any
	}
	got := map[string]rule{}
	for name, r := range load(t).Rules {
		then := rule{When: r["RuleCondition"]}
		for _, assertion := range r["Assertions"].([]any) {
			then.Then = append(then.Then, at(t, assertion, "Assert"))
			if text(at(t, assertion, "AssertDescription")) == "" {
				t.Errorf("%s says nothing", name)
			}
		}
		got[name] = then
	}
	want := map[string]rule{
		"ADomainHasItsCertificate": {given("DomainName"), []any{given("DomainCertificateArn")}},
		"MutualTLSHasNoWayAround":  {given("TruststoreUri"), []any{given("DomainName"), closed}},
		"TheDoorKeepsAName":        {closed, []any{given("DomainName")}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rules (-want +got):\n%s", diff)
	}
}
