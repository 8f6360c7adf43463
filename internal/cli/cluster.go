package cli

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
)

// Cluster are the flags of a process that joins a cluster's NATS servers.
type Cluster struct {
	Creds   string   `name:"nats-creds" env:"ULLAGE_NATS_CREDS" placeholder:"FILE" help:"Credentials of the NATS user."`
	CA      string   `name:"nats-ca" env:"ULLAGE_NATS_CA" placeholder:"FILE" help:"PEM file of the authorities that the servers' certificates are checked against. Default: the system's, where the URL says tls."`
	Cert    string   `name:"nats-cert" env:"ULLAGE_NATS_CERT" placeholder:"FILE" help:"PEM file of this process's own certificate."`
	Key     string   `name:"nats-key" env:"ULLAGE_NATS_KEY" placeholder:"FILE" help:"PEM file of its key."`
	Monitor []string `name:"nats-monitor" env:"ULLAGE_NATS_MONITOR" placeholder:"URL" help:"Monitoring addresses of the servers (http://host:8222), asked at start whether they sync every write."`
	Synced  bool     `name:"nats-synced" env:"ULLAGE_NATS_SYNCED" help:"State that every server runs with sync_interval: always, instead of having it checked."`
}

// Check refuses flags of a cluster where there is none: they would be passed over in silence.
func (c Cluster) Check(url string) error {
	if url == "" && (c.Creds != "" || c.CA != "" || c.Cert != "" || c.Key != "" || len(c.Monitor) > 0 || c.Synced) {
		return errors.New("flags of a cluster (--nats-…) are given and --nats is not; give --nats URL, or leave them out for the embedded server")
	}
	if (c.Cert == "") != (c.Key == "") {
		return errors.New("--nats-cert and --nats-key go together; give both or none")
	}
	return nil
}

// TLS is the client's side of TLS, nil where the flags ask for none.
func (c Cluster) TLS() (*tls.Config, error) {
	if c.CA == "" && c.Cert == "" {
		return nil, nil
	}
	t := &tls.Config{MinVersion: tls.VersionTLS12}
	if c.CA != "" {
		pem, err := os.ReadFile(c.CA)
		if err != nil {
			return nil, fmt.Errorf("read the authorities of --nats-ca: %w", err)
		}
		t.RootCAs = x509.NewCertPool()
		if !t.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("read the authorities of --nats-ca: %s holds no PEM certificate", c.CA)
		}
	}
	if c.Cert != "" {
		pair, err := tls.LoadX509KeyPair(c.Cert, c.Key)
		if err != nil {
			return nil, fmt.Errorf("read --nats-cert and --nats-key: %w", err)
		}
		t.Certificates = []tls.Certificate{pair}
	}
	return t, nil
}
