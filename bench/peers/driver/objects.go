package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"time"
)

const (
	gatewayAPI       = "/apis/gateway.networking.k8s.io/v1"
	gatewayGroup     = "gateway.networking.k8s.io"
	infraNamespace   = "infra"
	gatewayName      = "shared"
	setsPerNamespace = 50
)

type content = map[string]any

// Object is what is posted, and where.
type Object struct {
	collection string
	name       string
	content    content
}

func (o Object) path() string { return o.collection + "/" + o.name }

// Certificate is a key pair as a Secret holds it, and the digest of what a client then sees.
type Certificate struct {
	certificate, key []byte
	leaf             [sha256.Size]byte
}

var serial = time.Now().UnixNano()

func newCertificate(host string) (Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Certificate{}, err
	}
	number, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		return Certificate{}, err
	}
	template := &x509.Certificate{
		SerialNumber: number.Add(number, big.NewInt(serial)),
		Subject:      pkix.Name{CommonName: host},
		DNSNames:     []string{host},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(1000 * time.Hour),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return Certificate{}, err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return Certificate{}, err
	}
	return Certificate{
		certificate: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		key:         pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}),
		leaf:        sha256.Sum256(der),
	}, nil
}

// Tenant is one ListenerSet with what belongs to it.
type Tenant struct {
	namespace, name, host string
	certificate           Certificate
}

func newTenant(namespace, name, host string) (*Tenant, error) {
	certificate, err := newCertificate(host)
	return &Tenant{namespace, name, host, certificate}, err
}

// numberedTenant is the tenant of that number in the world that grows from size to size.
func numberedTenant(number int) (*Tenant, error) {
	name := fmt.Sprintf("set-%05d", number)
	return newTenant(fmt.Sprintf("team-%03d", number/setsPerNamespace), name, name+".example.com")
}

func (t *Tenant) key() string { return t.namespace + "/" + t.name }

func routePath(route int) string { return fmt.Sprintf("/path-%d", route) }

func core(namespace, plural string) string {
	return "/api/v1/namespaces/" + namespace + "/" + plural
}

func gatewayCollection(namespace, plural string) string {
	return gatewayAPI + "/namespaces/" + namespace + "/" + plural
}

func metadata(namespace, name string) content {
	return content{"namespace": namespace, "name": name}
}

func namespaceObject(name string) Object {
	return Object{"/api/v1/namespaces", name, content{
		"apiVersion": "v1", "kind": "Namespace", "metadata": content{"name": name},
	}}
}

func gatewayObject(class string) Object {
	listener := content{"name": "http", "port": 80, "protocol": "HTTP",
		"allowedRoutes": content{"namespaces": content{"from": "Same"}}}
	return Object{gatewayCollection(infraNamespace, "gateways"), gatewayName, content{
		"apiVersion": gatewayGroup + "/v1", "kind": "Gateway", "metadata": metadata(infraNamespace, gatewayName),
		"spec": content{
			"gatewayClassName": class,
			"allowedListeners": content{"namespaces": content{"from": "All"}},
			"listeners":        []any{listener},
		},
	}}
}

func (t *Tenant) secret() Object {
	return Object{core(t.namespace, "secrets"), t.name + "-tls", content{
		"apiVersion": "v1", "kind": "Secret", "metadata": metadata(t.namespace, t.name+"-tls"),
		"type": "kubernetes.io/tls", "data": t.certificate.data(),
	}}
}

func (c Certificate) data() content {
	return content{"tls.crt": c.certificate, "tls.key": c.key}
}

// Labels by which kube-proxy leaves a Service alone: its own work on thousands of Services would be
// measured otherwise, and no contestant sends traffic through it.
var unproxied = content{"service.kubernetes.io/service-proxy-name": "none"}

func (t *Tenant) service() Object {
	data := metadata(t.namespace, t.name)
	data["labels"] = unproxied
	return Object{core(t.namespace, "services"), t.name, content{
		"apiVersion": "v1", "kind": "Service", "metadata": data,
		"spec": content{"ports": []any{content{"name": "http", "port": 80, "protocol": "TCP"}}},
	}}
}

func (t *Tenant) slice(backend Backend) Object {
	name := t.name + "-1"
	data := metadata(t.namespace, name)
	data["labels"] = content{
		"kubernetes.io/service-name":               t.name,
		"endpointslice.kubernetes.io/managed-by":   "peers.mergeway.test",
		"service.kubernetes.io/service-proxy-name": "none",
	}
	return Object{"/apis/discovery.k8s.io/v1/namespaces/" + t.namespace + "/endpointslices", name, content{
		"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "metadata": data, "addressType": "IPv4",
		"ports":     []any{content{"name": "http", "port": backend.port, "protocol": "TCP"}},
		"endpoints": []any{content{"addresses": []string{backend.address}, "conditions": content{"ready": true}}},
	}}
}

func (t *Tenant) listenerSet() Object {
	listener := content{
		"name": "https", "hostname": t.host, "port": 443, "protocol": "HTTPS",
		"tls": content{"mode": "Terminate", "certificateRefs": []any{content{"name": t.name + "-tls"}}},
	}
	return Object{gatewayCollection(t.namespace, "listenersets"), t.name, content{
		"apiVersion": gatewayGroup + "/v1", "kind": "ListenerSet", "metadata": metadata(t.namespace, t.name),
		"spec": content{
			"parentRef": content{"group": gatewayGroup, "kind": "Gateway", "name": gatewayName, "namespace": infraNamespace},
			"listeners": []any{listener},
		},
	}}
}

// route has a backend of another tenant of the same namespace where service says so.
func (t *Tenant) route(name, path, service string) Object {
	rule := content{
		"matches":     []any{content{"path": content{"type": "PathPrefix", "value": path}}},
		"backendRefs": []any{content{"name": service, "port": 80}},
	}
	return Object{gatewayCollection(t.namespace, "httproutes"), name, content{
		"apiVersion": gatewayGroup + "/v1", "kind": "HTTPRoute", "metadata": metadata(t.namespace, name),
		"spec": content{
			"parentRefs": []any{content{"group": gatewayGroup, "kind": "ListenerSet", "name": t.name}},
			"hostnames":  []any{t.host},
			"rules":      []any{rule},
		},
	}}
}

func (t *Tenant) routes(count int) []Object {
	objects := make([]Object, count)
	for route := range objects {
		objects[route] = t.route(fmt.Sprintf("%s-%02d", t.name, route), routePath(route), t.name)
	}
	return objects
}
