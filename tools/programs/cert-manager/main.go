// The controllers of cert-manager as released, started by a program of ours: the release's own
// programs live in modules that are published nowhere. Its webhook and its injector are not needed
// for what is issued here.
//
// The first argument chooses: "controller" runs the controllers; anything else makes this the
// solver of HTTP-01 challenges, whose arguments the controllers write into the pods they make.
package main

import (
	"context"
	"flag"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"

	"github.com/cert-manager/cert-manager/internal/controller/feature"
	"github.com/cert-manager/cert-manager/pkg/controller"
	"github.com/cert-manager/cert-manager/pkg/issuer/acme/http/solver"
	utilfeature "github.com/cert-manager/cert-manager/pkg/util/feature"

	_ "github.com/cert-manager/cert-manager/pkg/controller/acmechallenges"
	_ "github.com/cert-manager/cert-manager/pkg/controller/acmeorders"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificate-shim/gateways"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificate-shim/listenerset"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/acme"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/approver"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/ca"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/selfsigned"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/issuing"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/keymanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/readiness"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/requestmanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/revisionmanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/trigger"
	_ "github.com/cert-manager/cert-manager/pkg/controller/clusterissuers"
	_ "github.com/cert-manager/cert-manager/pkg/controller/issuers"
	_ "github.com/cert-manager/cert-manager/pkg/issuer/acme"
	_ "github.com/cert-manager/cert-manager/pkg/issuer/ca"
	_ "github.com/cert-manager/cert-manager/pkg/issuer/selfsigned"
)

func main() {
	run := solve
	if len(os.Args) > 1 && os.Args[1] == "controller" {
		run = control
	}
	if err := run(); err != nil {
		klog.ErrorS(err, "ended")
		klog.FlushAndExit(klog.ExitFlushTimeout, 1)
	}
}

func solve() error {
	var it solver.HTTP01Solver
	flag.IntVar(&it.ListenPort, "listen-port", 8089, "")
	flag.StringVar(&it.Domain, "domain", "", "")
	flag.StringVar(&it.Token, "token", "", "")
	flag.StringVar(&it.Key, "key", "", "")
	flag.Parse()
	return it.Listen(klog.Background())
}

func control() error {
	flags := flag.NewFlagSet("controller", flag.ExitOnError)
	kubeconfig := flags.String("kubeconfig", os.Getenv("KUBECONFIG"), "")
	namespace := flags.String("cluster-resource-namespace", "cert-manager", "where Secrets of ClusterIssuers are")
	image := flags.String("acme-http01-solver-image", "", "")
	nameservers := flags.String("acme-http01-solver-nameservers", "", "comma-separated, each with its port")
	if err := flags.Parse(os.Args[2:]); err != nil {
		return err
	}
	if err := utilfeature.DefaultMutableFeatureGate.Set(string(feature.ListenerSets) + "=true"); err != nil {
		return err
	}
	ctx, end := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer end()
	group, ctx := errgroup.WithContext(klog.NewContext(ctx, klog.Background()))

	options := controller.ContextOptions{
		Kubeconfig:       *kubeconfig,
		IssuerOptions:    controller.IssuerOptions{ClusterResourceNamespace: *namespace},
		SchedulerOptions: controller.SchedulerOptions{MaxConcurrentChallenges: 60},
		ConfigOptions:    controller.ConfigOptions{EnableGatewayAPI: true, EnableGatewayAPIListenerSet: true},
		IngressShimOptions: controller.IngressShimOptions{
			DefaultIssuerKind:        "Issuer",
			DefaultIssuerGroup:       "cert-manager.io",
			GatewayAPIExtraProtocols: sets.New[string](),
		},
		ACMEOptions: controller.ACMEOptions{
			HTTP01SolverImage:                 *image,
			HTTP01SolverResourceRequestCPU:    resource.MustParse("10m"),
			HTTP01SolverResourceRequestMemory: resource.MustParse("64Mi"),
			HTTP01SolverResourceLimitsCPU:     resource.MustParse("100m"),
			HTTP01SolverResourceLimitsMemory:  resource.MustParse("64Mi"),
			ACMEHTTP01SolverRunAsNonRoot:      true,
			DNS01CheckRetryPeriod:             10 * time.Second,
		},
		CertificateOptions: controller.CertificateOptions{
			CopiedAnnotationPrefixes:                 []string{"*", "-kubectl.kubernetes.io/"},
			CertificateRequestMinimumBackoffDuration: time.Hour,
			CertificateRequestMaximumBackoffDuration: 32 * time.Hour,
		},
	}
	if *nameservers != "" {
		options.ACMEOptions.HTTP01SolverNameservers = strings.Split(*nameservers, ",")
	}
	factory, err := controller.NewContextFactory(ctx, options)
	if err != nil {
		return err
	}
	shared, err := factory.Build()
	if err != nil {
		return err
	}
	for name, construct := range controller.Known() {
		each, err := construct(factory)
		if err != nil {
			return err
		}
		klog.InfoS("starting", "controller", name)
		group.Go(func() error { return each.Run(5, ctx) })
	}
	shared.SharedInformerFactory.Start(ctx.Done())
	shared.KubeSharedInformerFactory.Start(ctx.Done())
	shared.HTTP01ResourceMetadataInformersFactory.Start(ctx.Done())
	shared.GWShared.Start(ctx.Done())
	return group.Wait()
}
