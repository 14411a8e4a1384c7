/**
 * Real cloudflared, where CLOUDFLARED names one. Its checks of the way to Cloudflare are left out:
 * there is none here.
 */
const PROGRAM: string | undefined = process.env["CLOUDFLARED"] || undefined;

/**
 * A command that takes the arguments that Mergeway gives to cloudflared; undefined where there is
 * none.
 */
export const REAL_CLOUDFLARED: readonly string[] | undefined =
  PROGRAM === undefined
    ? undefined
    : ["/bin/sh", "-c", `shift; exec '${PROGRAM}' tunnel --no-prechecks "$@"`, "cloudflared"];
