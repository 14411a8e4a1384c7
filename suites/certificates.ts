import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { authority, issue } from "../test/dataplanes/certificates.ts";
import type { Certificates } from "./suite.ts";

const DAYS = 90 * 86_400_000;

/** Valid as briefly as those of public authorities, because scanners complain of longer ones. */
export function writeCertificates(folder: string): Certificates {
  const ca = authority("suites of others");
  const names = ["localhost", "127.0.0.1", "suites.test", "*.suites.test"];
  const { cert, key } = issue(ca, names, { notAfter: new Date(Date.now() + DAYS) });
  const files = { ca: join(folder, "ca.crt"), cert: join(folder, "tls.crt"), key: join(folder, "tls.key") };
  writeFileSync(files.ca, ca.cert);
  writeFileSync(files.cert, cert);
  writeFileSync(files.key, key, { mode: 0o600 });
  return files;
}
