"""The identities of shared/reference/README.md (MisleadQA), held to our aggregation: CSV -> answers -> results."""

from functools import cache

import published_misleadqa as published
import pytest
from published_misleadqa import CONDITIONS, GROUPS, MODELS, by, table

from scope.evaluation.results import Settings, results
from scope.evaluation.suites import SUITES

pytestmark = pytest.mark.skipif(not published.REFERENCE.is_dir(), reason="the shared tables are not here")


def close(rate, printed, within=0.005):
    """A fraction of ours against a printed percentage."""
    assert abs(100 * rate["estimate"] - printed) <= within + 1e-9, f"{100 * rate['estimate']:.4f}, printed {printed}"


def counted(suite, items, labels, responses=None):
    """results.json of all models' labels."""
    rows = [row for model in MODELS for row in published.rows(model, items, labels[model])]
    assert responses is None or len(rows) == by("facts", "name")[responses]["value"]
    return results(SUITES[suite], list(items), rows, Settings(replicates=40, reference="none"))


@cache
def found():
    labels = {model: one.labels for model, one in published.main().items()}
    return counted("misleadqa", published.items(), labels, "responses_main")


def test_table_2_from_counts():
    made = found()
    for row in table("table2_main"):
        if row["row_type"] == "model":
            rates, strata = made["systems"][row["model"]]["rates"], made["systems"][row["model"]]["strata"]
            assert (strata["b"], strata["a"]) == (row["b_size"], row["a_size"])
        elif row["row_type"] == "mean":
            assert made["mean"]["systems"] == list(MODELS)
            rates = made["mean"]["rates"]
        elif row["row_type"] == "mean_without_olmo":
            rates = made["mean"]["without"]["OLMo-2-13B"]
        else:
            continue
        for metric, rate in rates.items():
            close(rate, row[metric])
    assert made["levels"] == {"delta_lr": pytest.approx(0.975), "delta_rlr": pytest.approx(0.975)}
    assert made["seed"] == 2027 and made["units"]["cluster"] == 44 + 137 + 116 + 192


def test_table_14_and_the_averages_over_orders():
    for row in table("table14_outcomes"):
        ours = found()["mean"]["panels"]["outcomes"][f"{row['subset']} {CONDITIONS[row['condition']]}"]
        # Gold with F is fitted on B, and only its few items outside A are known.
        close(ours["gold"], row["gold"], 0.016 if (row["subset"], row["condition"]) == ("a", "f_alone") else 0.005)
        close(ours["lure"], row["lure"])
        # The last of the fitted columns takes what rounding leaves over.
        close(ours["abstain"], row["abstain"], 0.016)
        close(ours["other"], row["other"], 0.016)
        assert sum(rate["estimate"] for rate in ours.values()) == pytest.approx(1)


def test_table_15_its_mean_and_rlr_as_the_mean_of_both_orders():
    for row in table("table15_order"):
        own = found()["mean"] if row["model"] == "Mean" else found()["systems"][row["model"]]
        place = f"{row['context']}_g_first" if row["order"] == "g_first" else f"{row['context']}_first"
        close(own["panels"]["orders"]["a"][place], row["lure"])
    for model in MODELS:
        orders, rates = (found()["systems"][model][key] for key in ("panels", "rates"))
        for context in "sf":
            pair = [orders["orders"]["a"][f"{context}{end}"]["estimate"] for end in ("_g_first", "_first")]
            assert sum(pair) / 2 == pytest.approx(rates[f"rlr_{context}"]["estimate"])


def test_table_16_and_how_much_of_a_it_keeps():
    kept = {"g_first": "g_then_s", "f_first": "s_then_g"}
    for row in table("table16_paired"):
        place = "g_first" if row["order"] == "g_first" else "misleading_first"
        if row["model"] == "Mean":
            ours = found()["mean"]["panels"]["paired"][place]
            close(ours["kept"], by("table14_outcomes", "subset", "condition")["a", kept[row["order"]]]["gold"])
        else:
            ours = found()["systems"][row["model"]]["panels"]["paired"][place]
            assert ours["gold"]["n"] == ours["kept"]["events"] == row["n"]
        close(ours["gold"], row["gold"])
        close(ours["lure"], row["lure"])


def test_table_25_the_groups_add_up_to_b_and_a():
    for model in MODELS:
        groups = found()["systems"][model]["panels"]["groups"]
        for group, (source, dimension, _, _) in GROUPS.items():
            row = by("table25_group_sizes", "model", "group")[model, group]
            ours = groups[f"{source} {dimension}"]
            assert (ours["lr_s"]["n"], ours["rlr_s"]["n"] / 2) == (row["b_size"], row["a_size"])
        strata = found()["systems"][model]["strata"]
        assert sum(ours["lr_f"]["n"] for ours in groups.values()) == strata["b"]
        for metric in ("lr_s", "rlr_f"):
            weighted = sum(ours[metric]["events"] for ours in groups.values()) / sum(
                g[metric]["n"] for g in groups.values()
            )
            assert weighted == pytest.approx(found()["systems"][model]["rates"][metric]["estimate"])


def test_table_26_and_the_gaps_by_order():
    ours = found()["mean"]["panels"]["effects"]["all"]
    names = {"f_reduction": "reduction_f", "s_reduction": "reduction_s"}
    names |= {"f_order_effect": "order_f", "s_order_effect": "order_s"}
    for row in table("table26_resampling"):
        close(ours[names.get(row["metric"], row["metric"])], row["estimate"], 0.0075)
    orders = found()["mean"]["panels"]["orders"]["a"]
    gaps = [100 * (orders[f"f{end}"]["estimate"] - orders[f"s{end}"]["estimate"]) for end in ("_g_first", "_first")]
    assert gaps == [pytest.approx(3.45, abs=0.005), pytest.approx(36.75, abs=0.005)]
    again = found()["sensitivity"]["dependency group"]["mean"]["panels"]["effects"]["all"]
    for name, rate in ours.items():
        assert again[name]["estimate"] == rate["estimate"], "another unit of resampling leaves the estimate"
        assert again[name]["interval"] != rate["interval"]


def test_tables_17_and_18_of_the_supplement():
    made = counted("misleadqa_condition", published.supplement(), published.conditions())
    for row in table("table17_condition_lure"):
        own = made["mean"] if row["model"] == "Mean" else made["systems"][row["model"]]
        for metric in ("lr_s", "lr_f", "rlr_s", "rlr_f"):
            close(own["rates"][metric], row[metric])
        if row["n"]:
            assert own["strata"]["b"] == own["strata"]["a"] == row["n"]
    assert made["units"]["cluster"] == by("facts", "name")["supplement_clusters"]["value"]
    for row in table("table18_condition_outcomes"):
        ours = made["mean"]["panels"]["outcomes"][f"{row['subset']} {CONDITIONS[row['condition']]}"]
        for label in ("gold", "lure"):
            close(ours[label], row[label])


@cache
def instructed():
    return counted("misleadqa_faithful", published.items(), published.faithful())


def test_tables_3_21_and_22_of_the_instruction():
    names = {"s_alone_abstain": "s_abstain", "s_alone_lure": "s_lure", "f_alone_lure": "f_lure"}
    names |= {"g_alone_gold": "g_gold", "s_with_g_gold": "sg_gold", "f_with_g_abstain": "fg_abstain"}
    for row in table("table22_cf_per_model"):
        own = instructed()["mean"] if row["model"] == "Mean" else instructed()["systems"][row["model"]]
        for column, metric in names.items():
            close(own["rates"][metric], row[column])
    panels, short = instructed()["mean"]["panels"], {"s_alone": "s", "f_alone": "f", "g_alone": "g"}
    for row in table("table3_cf"):
        ours = panels["prescribed"][f"{short.get(row['condition'], row['condition'])} {row['prescribed']}"]
        close(ours["original"], row["original"], 0.011)
        close(ours["faithful"], row["cf"])
        close(ours["change"], row["delta"], 0.02)
    for row in table("table21_cf_outcomes"):
        prompt = "faithful" if row["prompt"] == "cf" else "original"
        ours = panels["outcomes"][f"{short.get(row['condition'], row['condition'])} {prompt}"]
        for label in ("gold", "lure", "abstain", "other"):
            close(ours[label], row[label], 0.017)


def test_table_23_and_the_common_subset():
    for row in table("table23_common_subset"):
        own = instructed()["mean"] if row["model"] == "Mean" else instructed()["systems"][row["model"]]
        ours = own["panels"]["common"]["a"]
        close(ours["kept"], row["kept"])
        if row["a_size"]:
            assert (ours["kept"]["events"], ours["kept"]["n"]) == (row["common_size"], row["a_size"])
    facts = instructed()["mean"]["panels"]["common"]["a"]
    close(facts["original"], 98.92)
    close(facts["faithful"], 94.82)


def test_tables_19_and_20_of_scope_recognition():
    made = counted("misleadqa_scope", published.sample(), published.judged())
    shown = ("applicable", "not_applicable", "cannot_determine")
    total = dict.fromkeys([(c, label) for c in "sf" for label in shown], 0)
    for row in table("table19_scope_labels"):
        for label in shown:
            if row["model"] == "Total":
                assert total[row["context"], label] == row[label]
            else:
                ours = made["systems"][row["model"]]["panels"]["judgements"][row["context"]]
                assert (ours[label]["events"], ours[label]["n"]) == (row[label], 200)
                total[row["context"], label] += ours[label]["events"]
    rates = made["mean"]["rates"]
    close(rates["f_recognised"], 96.00)
    close(rates["s_recognised"], 62.42)
    assert rates["g_recognised"]["estimate"] == pytest.approx(1)
    for row in table("table20_scope_lure_counts"):
        if row["model"] != "Mean":
            ours = made["systems"][row["model"]]["panels"]["linked"]["h"][row["s_label"]]
            assert (ours["events"], ours["n"]) == (row["lure"], row["items"])
            assert (ours["estimate"] is None) == (row["items"] == 0), "a dash, not zero"
        elif row["mean_rate"] is None:
            assert made["mean"]["panels"]["linked"]["h"][row["s_label"]]["estimate"] is None
        else:
            close(made["mean"]["panels"]["linked"]["h"][row["s_label"]], row["mean_rate"])


def test_table_4_of_option_order():
    made = counted("misleadqa_order", published.sample(), published.orders(), "responses_option_order")
    names = {"original original": 0, "stable original": 1, "stable mean": 2}
    for row, place in names.items():
        printed, ours = table("table4_option_order")[place], made["mean"]["panels"]["orders"][row]
        close(ours["lr_s"], printed["lr_s"])
        close(ours["lr_f"], printed["lr_f"])
        close(ours["delta_lr"], printed["f_minus_s"], 0.012)
    close(made["mean"]["rates"]["kept"], 62.22)
    for metric in ("lr_s", "lr_f", "delta_lr"):
        rate = made["mean"]["panels"]["orders"]["stable mean"][metric]
        assert made["mean"]["rates"][metric]["estimate"] == rate["estimate"]
    by_group = made["sensitivity"]["dependency group"]["mean"]["panels"]["orders"]["stable mean"]["delta_lr"]
    assert by_group["interval"] is not None
