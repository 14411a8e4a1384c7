/** Light, dark, or as the system has it. The choice stays in this browser. */
const THEMES = ["auto", "light", "dark"] as const;
type Theme = (typeof THEMES)[number];

const STORE = "mergeway-theme";
const LABELS: Readonly<Record<Theme, readonly [mark: string, label: string]>> = {
  auto: ["◐", "Colours as the system has them"],
  light: ["☀", "Light colours"],
  dark: ["☾", "Dark colours"],
};

export function keepTheme(button: HTMLButtonElement): void {
  let theme = stored();
  const show = (): void => {
    if (theme === "auto") delete document.documentElement.dataset["theme"];
    else document.documentElement.dataset["theme"] = theme;
    const [mark, label] = LABELS[theme];
    button.textContent = mark;
    button.setAttribute("aria-label", `${label}. Change`);
    button.title = label;
  };
  show();
  button.addEventListener("click", () => {
    theme = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length] ?? "auto";
    try {
      localStorage.setItem(STORE, theme);
    } catch {
      // A browser that keeps nothing still shows it.
    }
    show();
  });
}

function stored(): Theme {
  try {
    return THEMES.find((theme) => theme === localStorage.getItem(STORE)) ?? "auto";
  } catch {
    return "auto";
  }
}
